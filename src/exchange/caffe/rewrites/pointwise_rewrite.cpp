// Functions of each value.
#include <cmath>
#include <limits>

#include "exchange/caffe/rewrites/parts.h"
#include "proto/params/activation.pb.h"
#include "proto/params/pointwise.pb.h"

namespace crema {
namespace {

constexpr double kUnbounded = std::numeric_limits<double>::infinity();

// min(max(scale * x + shift, low), high) as the last two steps of a chain: high - relu(high - low -
// relu(scale * x + shift - low)). Sums of the value and its excess would lose large values.
int clipped_above(LayerRewrite& layer, int x, double scale, double shift, double low, double high) {
  const int above = layer.add("ReLU", {power_of(layer, x, scale, shift - low)});
  return layer.add("ReLU", {power_of(layer, above, -1, high - low)});
}

void rewrite_clip_to(LayerRewrite& layer, double low, double high) {
  const int x = layer.bottom();
  if (low == -kUnbounded && high == kUnbounded) return layer.pass_on(x);
  if (high == kUnbounded)
    return write_power(layer, layer.add("ReLU", {power_of(layer, x, 1, -low)}), 1, low);
  if (low == -kUnbounded)
    return write_power(layer, layer.add("ReLU", {power_of(layer, x, -1, high)}), -1, high);
  write_power(layer, clipped_above(layer, x, 1, 0, low, high), -1, high);
}

void rewrite_relu6(LayerRewrite& layer) { rewrite_clip_to(layer, 0, 6); }
REWRITE_LAYER(ReLU6, rewrite_relu6);

void rewrite_clip(LayerRewrite& layer) {
  const ClipParameter& p = layer.message().clip_param();
  if (p.min() == 0 && p.max() == 6 && layer.has("ReLU6"))
    return layer.write("ReLU6", {layer.bottom()});
  rewrite_clip_to(layer, p.min(), p.max());
}
REWRITE_LAYER(Clip, rewrite_clip);

void rewrite_hard_sigmoid(LayerRewrite& layer) {
  const HardSigmoidParameter& p = layer.message().hard_sigmoid_param();
  write_power(layer, clipped_above(layer, layer.bottom(), p.alpha(), p.beta(), 0, 1), -1, 1);
}
REWRITE_LAYER(HardSigmoid, rewrite_hard_sigmoid);

void rewrite_hard_swish(LayerRewrite& layer) {
  const int x = layer.bottom();
  const int above = clipped_above(layer, x, 1.0 / 6, 0.5, 0, 1);
  write_product(layer, {x, power_of(layer, above, -1, 1)});
}
REWRITE_LAYER(HardSwish, rewrite_hard_swish);

void rewrite_swish(LayerRewrite& layer) {
  const double beta = layer.type() == "SiLU" ? 1 : layer.message().swish_param().beta();
  const int x = layer.bottom();
  write_product(layer, {x, layer.add("Sigmoid", {power_of(layer, x, beta, 0)})});
}
REWRITE_LAYER(Swish, rewrite_swish);
REWRITE_LAYER(SiLU, rewrite_swish);

void rewrite_mish(LayerRewrite& layer) {
  const int x = layer.bottom();
  write_product(layer, {x, layer.add("TanH", {layer.add("BNLL", {x})})});
}
REWRITE_LAYER(Mish, rewrite_mish);

// The exact form has the error function, which is no combination of exponentials, powers and products.
void rewrite_gelu(LayerRewrite& layer) {
  if (!layer.message().gelu_param().approximate())
    layer.refuse("none of its layers computes the error function",
                 "write gelu_param { approximate: true }, and train a little with it");
  const int x = layer.bottom();
  constexpr float kFactor = 0.7978845608f;  // sqrt(2 / pi)
  const int sum = sum_of(layer, {x, product_of(layer, {x, x, x})}, {kFactor, kFactor * 0.044715f});
  write_product(layer, {x, power_of(layer, layer.add("TanH", {sum}), 0.5, 0.5)});
}
REWRITE_LAYER(GELU, rewrite_gelu);

void rewrite_scaled_elu(LayerRewrite& layer, float alpha, float lambda) {
  const int elu = layer.add("ELU", {layer.bottom()}, [alpha](LayerParameter* to) {
    to->mutable_elu_param()->set_alpha(alpha);
  });
  write_power(layer, elu, lambda, 0);
}

void rewrite_elu(LayerRewrite& layer) {
  const ELUParameter& p = layer.message().elu_param();
  rewrite_scaled_elu(layer, p.alpha(), p.lambda());
}
REWRITE_LAYER(ELU, rewrite_elu);

void rewrite_selu(LayerRewrite& layer) {
  const SELUParameter& p = layer.message().selu_param();
  rewrite_scaled_elu(layer, p.alpha(), p.lambda());
}
REWRITE_LAYER(SELU, rewrite_selu);
REWRITE_LAYER(SeLu, rewrite_selu);

// The mirror image of ReLU.
void rewrite_neg_relu(LayerRewrite& layer) {
  const float slope = layer.message().relu_param().negative_slope();
  const int mirrored =
      layer.add("ReLU", {power_of(layer, layer.bottom(), -1, 0)}, [slope](LayerParameter* to) {
        if (slope != 0) to->mutable_relu_param()->set_negative_slope(slope);
      });
  write_power(layer, mirrored, -1, 0);
}
REWRITE_LAYER(NegReLU, rewrite_neg_relu);

// One slope for all channels as one for each.
void rewrite_prelu(LayerRewrite& layer) {
  const Shape x = layer.bottom_shape();
  const int64_t channels = x.axes() > 1 ? x[1] : 1;
  layer.write_changed("PReLU",
                      [](LayerParameter* to) { to->mutable_prelu_param()->clear_channel_shared(); },
                      {{{channels}, std::vector<float>(channels, layer.blob_values(0)[0])}});
}
REWRITE_LAYER(PReLU, rewrite_prelu);

void rewrite_abs_val(LayerRewrite& layer) {
  layer.write("ReLU", {layer.bottom()},
              [](LayerParameter* to) { to->mutable_relu_param()->set_negative_slope(-1); });
}
REWRITE_LAYER(AbsVal, rewrite_abs_val);

void rewrite_scale_tanh(LayerRewrite& layer) {
  const float factor = layer.message().scale_tanh_param().init_scale();
  layer.write("TanH", {power_of(layer, layer.bottom(), factor, 0)});
}
REWRITE_LAYER(ScaleTanH, rewrite_scale_tanh);

// Another base is another factor.
void rewrite_log(LayerRewrite& layer) {
  const LogParameter& p = layer.message().log_param();
  const int log = layer.add("Log", {power_of(layer, layer.bottom(), p.scale(), p.shift())});
  write_power(layer, log, p.base() == -1 ? 1 : 1 / std::log(static_cast<double>(p.base())), 0);
}
REWRITE_LAYER(Log, rewrite_log);

// Lines as Scale, with the same factor and bias for all channels, and small whole powers as products.
void rewrite_power(LayerRewrite& layer) {
  const PowerParameter p = layer.message().power_param();
  const Shape x = layer.bottom_shape();
  if (p.power() != 1 && p.power() != 2 && p.power() != 3)
    layer.refuse(cat("its power is ", p.power()), "use powers of 1, 2 or 3");
  if (x.axes() < 2) layer.refuse("the bottom has no channels", "reshape it to two axes or more");
  const FillCaffeLayer fill = [&](LayerParameter* to) {
    if (p.shift() != 0) to->mutable_scale_param()->set_bias_term(true);
  };
  std::vector<CaffeBlob> blobs = {{{x[1]}, std::vector<float>(x[1], p.scale())}};
  if (p.shift() != 0) blobs.push_back({{x[1]}, std::vector<float>(x[1], p.shift())});
  if (p.power() == 1) return layer.write("Scale", {layer.bottom()}, fill, std::move(blobs));
  const int line = p.scale() == 1 && p.shift() == 0
                       ? layer.bottom()
                       : layer.add("Scale", {layer.bottom()}, fill, std::move(blobs));
  write_product(layer, std::vector<int>(static_cast<size_t>(p.power()), line));
}
REWRITE_LAYER(Power, rewrite_power);

// What passes its input on in inference.
void rewrite_as_nothing(LayerRewrite& layer) { layer.pass_on(layer.bottom()); }
REWRITE_LAYER(SpatialDropout, rewrite_as_nothing);
REWRITE_LAYER(SeLuDropout, rewrite_as_nothing);
REWRITE_LAYER(Debug, rewrite_as_nothing);

void rewrite_dropout(LayerRewrite& layer) {
  const DropoutParameter& p = layer.message().dropout_param();
  if (p.sample_weights_test())
    layer.refuse("sample_weights_test draws random numbers in inference", "leave it out");
  if (p.scale_train()) return layer.pass_on(layer.bottom());
  write_power(layer, layer.bottom(), 1 - p.dropout_ratio(), 0);
}
REWRITE_LAYER(Dropout, rewrite_dropout);

void rewrite_noise(LayerRewrite& layer) {
  if (layer.message().noise_param().has_filler_param())
    layer.refuse("with a filler_param it adds random numbers in inference too", "leave it out");
  layer.pass_on(layer.bottom());
}
REWRITE_LAYER(Noise, rewrite_noise);

// Channels times a factor of each image, plus a blob.
void rewrite_axpy(LayerRewrite& layer) {
  int factors = layer.bottom(0);
  const Shape& x = layer.bottom_shape(1);
  factors = reshaped(layer, factors, {x[0], x[1]});
  const int scaled = layer.add("Scale", {layer.bottom(1), factors},
                               [](LayerParameter* to) { to->mutable_scale_param()->set_axis(0); });
  write_sum(layer, {scaled, layer.bottom(2)}, {});
}
REWRITE_LAYER(Axpy, rewrite_axpy);

}  // namespace
}  // namespace crema
