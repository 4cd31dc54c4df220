// Layers that compute each element by itself, as ONNX operators.
#include <algorithm>
#include <cmath>

#include "exchange/onnx/layer_export.h"
#include "exchange/onnx/rounding.h"
#include "layers/pointwise/dropout_params.h"
#include "proto/params/activation.pb.h"
#include "proto/params/pointwise.pb.h"
#include "proto/params/quantization.pb.h"

namespace crema {
namespace {

// scale * x + shift.
std::string scaled_and_shifted(LayerExport& layer, double scale, double shift) {
  std::string x = layer.bottom();
  if (scale != 1) x = layer.node("Mul", {x, layer.scalar(static_cast<float>(scale))});
  if (shift != 0) x = layer.node("Add", {x, layer.scalar(static_cast<float>(shift))});
  return x;
}

template <const char* kOp>
void write_as(LayerExport& layer) {
  layer.write(kOp, {layer.bottom()});
}
constexpr char kAbs[] = "Abs", kSigmoid[] = "Sigmoid", kTanh[] = "Tanh", kSoftplus[] = "Softplus",
               kIdentity[] = "Identity";

EXPORT_LAYER(AbsVal, write_as<kAbs>);
EXPORT_LAYER(Sigmoid, write_as<kSigmoid>);
EXPORT_LAYER(TanH, write_as<kTanh>);
EXPORT_LAYER(BNLL, write_as<kSoftplus>);
// In inference these pass their input on.
void write_noiseless(LayerExport& layer) {
  layer.refuse_noise_in_training();
  layer.write("Identity", {layer.bottom()});
}
EXPORT_LAYER(SpatialDropout, write_noiseless);
EXPORT_LAYER(SeLuDropout, write_noiseless);
EXPORT_LAYER(Debug, write_as<kIdentity>);

// Random words are drawn for four channels of a position together, as kernels/pointwise/dropout.h says.
void write_masks(LayerExport& layer, const DropoutParams& params) {
  const DropoutMask mask = params.mask({}, {});
  const DropoutLayout layout = DropoutLayout::of(layer.bottom_shape());
  layer.write("DropoutMask", {layer.bottom()},
              {{"layout", std::vector<int64_t>{layout.images, layout.channels, layout.positions}},
               {"threshold", static_cast<int64_t>(mask.threshold)},
               {"factor", mask.factor},
               {"layer", static_cast<int64_t>(layer.layer().id())}});
}

void write_dropout(LayerExport& layer) {
  const DropoutParameter& p = layer.message().dropout_param();
  if (p.sample_weights_test())
    layer.refuse("sample_weights_test draws random numbers in inference", "leave it out");
  if (layer.options().training) return write_masks(layer, DropoutParams(p, true));
  if (p.scale_train()) return layer.write("Identity", {layer.bottom()});
  layer.write("Mul", {layer.bottom(), layer.scalar(1 - p.dropout_ratio())});
}
EXPORT_LAYER(Dropout, write_dropout);

void write_fake_quantize(LayerExport& layer) {
  const FakeQuantizeParameter& p = layer.message().fake_quantize_param();
  const std::vector<float> range = layer.parameter_values(0);
  const float most = std::max(-range[0], range[1]) * layer.parameter_values(1)[0];
  if (most <= 0) return layer.write("Identity", {layer.bottom()});
  if (p.bits() != 8) layer.refuse("integers there have 8 bits", "write bits: 8");
  const bool has_sign = range[0] < 0;
  const QuantizedValues values{most / (has_sign ? 127.f : 255.f), has_sign ? -128.f : 0.f,
                               has_sign ? 127.f : 255.f};
  write_rounded(layer.graph(), layer.bottom(), layer.top(), values);
}
EXPORT_LAYER(FakeQuantize, write_fake_quantize);

void write_noise(LayerExport& layer) {
  if (layer.message().noise_param().has_filler_param())
    layer.refuse("with a filler_param it adds random numbers in inference too", "leave it out");
  layer.refuse_noise_in_training();
  layer.write("Identity", {layer.bottom()});
}
EXPORT_LAYER(Noise, write_noise);

void write_relu(LayerExport& layer) {
  const float slope = layer.message().relu_param().negative_slope();
  if (slope == 0) return layer.write("Relu", {layer.bottom()});
  layer.write("LeakyRelu", {layer.bottom()}, {{"alpha", slope}});
}
EXPORT_LAYER(ReLU, write_relu);

void write_neg_relu(LayerExport& layer) {
  const float slope = layer.message().relu_param().negative_slope();  // of what is positive
  const std::string below = layer.node("Min", {layer.bottom(), layer.scalar(0)});
  if (slope == 0) return layer.write("Identity", {below});
  const std::string above = layer.node("Relu", {layer.bottom()});
  layer.write("Add", {below, layer.node("Mul", {above, layer.scalar(slope)})});
}
EXPORT_LAYER(NegReLU, write_neg_relu);

void write_relu6(LayerExport& layer) { layer.clip(layer.bottom(), 0, 6, true); }
EXPORT_LAYER(ReLU6, write_relu6);

void write_clip(LayerExport& layer) {
  const ClipParameter& p = layer.message().clip_param();
  layer.clip(layer.bottom(), p.min(), p.max(), true);
}
EXPORT_LAYER(Clip, write_clip);

void write_prelu(LayerExport& layer) {
  std::vector<int64_t> slopes(std::max(layer.bottom_shape().axes() - 1, 1), 1);
  slopes[0] = layer.parameter_shape(0).count();
  layer.write("PRelu", {layer.bottom(), layer.parameter(0, slopes)});
}
EXPORT_LAYER(PReLU, write_prelu);

void write_elu(LayerExport& layer, float alpha, float lambda) {
  if (lambda == 1) return layer.write("Elu", {layer.bottom()}, {{"alpha", alpha}});
  layer.write("Selu", {layer.bottom()}, {{"alpha", alpha}, {"gamma", lambda}});
}
void write_plain_elu(LayerExport& layer) {
  const ELUParameter& p = layer.message().elu_param();
  write_elu(layer, p.alpha(), p.lambda());
}
void write_selu(LayerExport& layer) {
  const SELUParameter& p = layer.message().selu_param();
  write_elu(layer, p.alpha(), p.lambda());
}
EXPORT_LAYER(ELU, write_plain_elu);
EXPORT_LAYER(SELU, write_selu);
EXPORT_LAYER(SeLu, write_selu);

void write_exp(LayerExport& layer) {
  const ExpParameter& p = layer.message().exp_param();
  const double rate = p.base() == -1 ? 1 : std::log(static_cast<double>(p.base()));
  layer.write("Exp", {scaled_and_shifted(layer, rate * p.scale(), rate * p.shift())});
}
EXPORT_LAYER(Exp, write_exp);

void write_log(LayerExport& layer) {
  const LogParameter& p = layer.message().log_param();
  const std::string x = scaled_and_shifted(layer, p.scale(), p.shift());
  if (p.base() == -1) return layer.write("Log", {x});
  const double rate = 1 / std::log(static_cast<double>(p.base()));
  layer.write("Mul", {layer.node("Log", {x}), layer.scalar(static_cast<float>(rate))});
}
EXPORT_LAYER(Log, write_log);

void write_power(LayerExport& layer) {
  const PowerParameter& p = layer.message().power_param();
  const std::string x = scaled_and_shifted(layer, p.scale(), p.shift());
  if (p.power() == 1) return layer.write("Identity", {x});
  if (p.power() == 2) return layer.write("Mul", {x, x});
  layer.write("Pow", {x, layer.scalar(p.power())});
}
EXPORT_LAYER(Power, write_power);

void write_threshold(LayerExport& layer) {
  const float bound = layer.message().threshold_param().threshold();
  const std::string above = layer.node("Greater", {layer.bottom(), layer.scalar(bound)});
  layer.cast(above, onnx::TensorProto::FLOAT, true);
}
EXPORT_LAYER(Threshold, write_threshold);

void write_swish(LayerExport& layer) {
  const float beta = layer.type() == "SiLU" ? 1 : layer.message().swish_param().beta();
  std::string x = layer.bottom();
  if (beta != 1) x = layer.node("Mul", {x, layer.scalar(beta)});
  layer.write("Mul", {layer.bottom(), layer.node("Sigmoid", {x})});
}
EXPORT_LAYER(Swish, write_swish);
EXPORT_LAYER(SiLU, write_swish);

void write_mish(LayerExport& layer) {
  const std::string x = layer.bottom();
  if (layer.opset() >= 18) return layer.write("Mish", {x});
  layer.write("Mul", {x, layer.node("Tanh", {layer.node("Softplus", {x})})});
}
EXPORT_LAYER(Mish, write_mish);

void write_hard_sigmoid(LayerExport& layer) {
  const HardSigmoidParameter& p = layer.message().hard_sigmoid_param();
  layer.write("HardSigmoid", {layer.bottom()}, {{"alpha", p.alpha()}, {"beta", p.beta()}});
}
EXPORT_LAYER(HardSigmoid, write_hard_sigmoid);

void write_hard_swish(LayerExport& layer) {
  const std::string x = layer.bottom();
  if (layer.opset() >= 14) return layer.write("HardSwish", {x});
  layer.write("Mul", {x, layer.node("HardSigmoid", {x}, {{"alpha", 1.f / 6}, {"beta", 0.5f}})});
}
EXPORT_LAYER(HardSwish, write_hard_swish);

void write_gelu(LayerExport& layer) {
  const bool approximate = layer.message().gelu_param().approximate();
  const std::string x = layer.bottom();
  if (layer.opset() >= 20) {
    return layer.write("Gelu", {x}, {{"approximate", std::string(approximate ? "tanh" : "none")}});
  }
  std::string inside;
  if (approximate) {
    const std::string cube = layer.node("Mul", {layer.node("Mul", {x, x}), x});
    const std::string sum =
        layer.node("Add", {x, layer.node("Mul", {cube, layer.scalar(0.044715f)})});
    inside = layer.node("Tanh", {layer.node("Mul", {sum, layer.scalar(0.7978845608f)})});
  } else {
    inside = layer.node("Erf", {layer.node("Mul", {x, layer.scalar(0.7071067812f)})});
  }
  const std::string half = layer.node("Mul", {x, layer.scalar(0.5f)});
  layer.write("Mul", {half, layer.node("Add", {inside, layer.scalar(1)})});
}
EXPORT_LAYER(GELU, write_gelu);

void write_scale_tanh(LayerExport& layer) {
  const float factor = layer.message().scale_tanh_param().init_scale();
  layer.write("Tanh", {scaled_and_shifted(layer, factor, 0)});
}
EXPORT_LAYER(ScaleTanH, write_scale_tanh);

}  // namespace
}  // namespace crema
