// Layers that change the size of images. What is linear in the rows and columns of an image is a
// product with a matrix on each side.
#include <algorithm>
#include <cmath>

#include "exchange/caffe/rewrites/parts.h"
#include "proto/params/dense.pb.h"
#include "proto/params/forks_flow.pb.h"
#include "proto/params/forks_segmentation.pb.h"
#include "proto/params/modern_shape.pb.h"
#include "proto/params/pooling.pb.h"
#include "proto/params/shape.pb.h"

namespace crema {
namespace {

// Each row has the weights of the values that become one: (to, from).
struct Weighting {
  int64_t to = 0, from = 0;
  std::vector<float> weights;

  Weighting(int64_t t, int64_t f) : to(t), from(f), weights(t * f) {}
  float& at(int64_t i, int64_t j) { return weights[i * from + j]; }
};

int permuted(LayerRewrite& layer, int x, const std::vector<uint32_t>& order) {
  return layer.add("Permute", {x}, [&](LayerParameter* to) {
    for (const uint32_t axis : order) to->mutable_permute_param()->add_order(axis);
  });
}

// Columns, then rows, as channels of a 1x1 convolution. Without Permute the rows of all images are
// a batch of an inner product, and then all channels one of images.
void write_weighted(LayerRewrite& layer, const Weighting& rows, const Weighting& columns) {
  const Shape x = layer.bottom_shape();
  if (layer.has("Permute")) {
    const int wide = permuted(layer, layer.bottom(), {0, 3, 1, 2});  // (N, W, C, H)
    const int high = permuted(layer, mixed(layer, wide, columns.to, columns.weights), {0, 3, 2, 1});
    const int y = mixed(layer, high, rows.to, rows.weights);  // (N, H, C, W)
    return layer.write("Permute", {y}, [](LayerParameter* to) {
      for (const uint32_t axis : {0, 2, 1, 3}) to->mutable_permute_param()->add_order(axis);
    });
  }
  const int lines = reshaped(layer, layer.bottom(), {x[0] * x[1] * x[2], x[3]});
  const int wide = mixed(layer, lines, columns.to, columns.weights);
  const int stacked = reshaped(layer, wide, {x[0] * x[1], x[2], columns.to, 1});
  write_reshaped(layer, mixed(layer, stacked, rows.to, rows.weights), layer.top_shape());
}

// Bilinear, with aligned corners; `before` positions are cut off in front.
Weighting interpolation(int64_t to, int64_t from, int64_t before, int64_t extent) {
  Weighting w(to, from);
  for (int64_t i = 0; i < to; ++i) {
    const double at = to == 1 ? 0
                              : static_cast<double>(i) * static_cast<double>(extent - 1) /
                                    static_cast<double>(to - 1);
    const auto low = std::min(static_cast<int64_t>(at), extent - 1);
    const double share = at - static_cast<double>(low);
    w.at(i, before + low) += static_cast<float>(1 - share);
    if (share > 0) w.at(i, before + std::min(low + 1, extent - 1)) += static_cast<float>(share);
  }
  return w;
}

void rewrite_interp(LayerRewrite& layer) {
  const InterpParameter& p = layer.message().interp_param();
  const Shape &x = layer.bottom_shape(), &y = layer.top_shape();
  const bool cuts = layer.type() == "Interp" && (p.pad_beg() != 0 || p.pad_end() != 0);
  if (!cuts && layer.has("Interp") &&
      (layer.type() != "Interp" || layer.bottoms() > 1 || !p.has_height())) {
    return layer.write("Interp", {layer.bottom()}, [&](LayerParameter* to) {
      to->mutable_interp_param()->set_height(static_cast<int>(y[2]));
      to->mutable_interp_param()->set_width(static_cast<int>(y[3]));
    });
  }
  const int64_t before = cuts ? -p.pad_beg() : 0, behind = cuts ? -p.pad_end() : 0;
  write_weighted(layer, interpolation(y[2], x[2], before, x[2] - before - behind),
                 interpolation(y[3], x[3], before, x[3] - before - behind));
}
REWRITE_LAYER(Interp, rewrite_interp);
REWRITE_LAYER(BilinearInterpolation, rewrite_interp);

// The weight at a distance in pixels.
double resample_filter(ResampleParameter::ResampleType type, double distance) {
  const double d = std::abs(distance);
  if (type != ResampleParameter::CUBIC) return std::max(0.0, 1 - d);
  if (d >= 2) return 0;
  return d <= 1 ? (1.5 * d - 2.5) * d * d + 1 : ((-0.5 * d + 2.5) * d - 4) * d + 2;
}

// Pixels have centres: the position of pixel i is (i + 1/2) * from / to - 1/2.
Weighting resampling(const ResampleParameter& p, int64_t to, int64_t from) {
  Weighting w(to, from);
  const double factor = static_cast<double>(from) / static_cast<double>(to);
  const double width = p.antialias() ? std::max(factor, 1.0) : 1;
  for (int64_t i = 0; i < to; ++i) {
    const double at = (static_cast<double>(i) + 0.5) * factor - 0.5;
    if (p.type() == ResampleParameter::NEAREST) {
      w.at(i, std::clamp<int64_t>(static_cast<int64_t>(std::floor(at + 0.5)), 0, from - 1)) = 1;
      continue;
    }
    double sum = 0;
    for (int64_t j = 0; j < from; ++j)
      sum += resample_filter(p.type(), (static_cast<double>(j) - at) / width);
    for (int64_t j = 0; j < from; ++j)
      w.at(i, j) = static_cast<float>(
          resample_filter(p.type(), (static_cast<double>(j) - at) / width) / sum);
  }
  return w;
}

void rewrite_resample(LayerRewrite& layer) {
  const ResampleParameter& p = layer.message().resample_param();
  const Shape x = layer.bottom_shape(), y = layer.top_shape();
  if (x == y) return layer.pass_on(layer.bottom());
  write_weighted(layer, resampling(p, y[2], x[2]), resampling(p, y[3], x[3]));
}
REWRITE_LAYER(Resample, rewrite_resample);

// Each channel by itself, a pixel as a rectangle of ones; then what is too much is cut off.
void rewrite_upsample(LayerRewrite& layer) {
  if (layer.bottoms() > 1)
    layer.refuse("it puts values where a mask says", "use an Upsample with one bottom instead");
  const Shape &x = layer.bottom_shape(), &y = layer.top_shape();
  const int64_t high = (y[2] + x[2] - 1) / x[2], wide = (y[3] + x[3] - 1) / x[3];
  const FillCaffeLayer fill = convolution(x[1], {high, wide}, {high, wide}, x[1]);
  const std::vector<CaffeBlob> ones = {
      {{x[1], 1, high, wide}, std::vector<float>(x[1] * high * wide, 1)}};
  if (y[2] == x[2] * high && y[3] == x[3] * wide)
    return layer.write("Deconvolution", {layer.bottom()}, fill, ones);
  const int whole = layer.add("Deconvolution", {layer.bottom()}, fill, ones);
  if (y[3] == x[3] * wide) return write_part(layer, whole, 2, 0, y[2]);
  write_part(layer, part_of(layer, whole, 2, 0, y[2]), 3, 0, y[3]);
}
REWRITE_LAYER(Upsample, rewrite_upsample);

Weighting means_of_parts(int64_t to, int64_t from) {
  Weighting w(to, from);
  for (int64_t i = 0; i < to; ++i) {
    const int64_t first = i * from / to, end = ((i + 1) * from + to - 1) / to;
    for (int64_t j = first; j < end; ++j) w.at(i, j) = 1 / static_cast<float>(end - first);
  }
  return w;
}

void rewrite_adaptive_pooling(LayerRewrite& layer) {
  const bool largest =
      layer.message().adaptive_pooling_param().pool() == AdaptivePoolingParameter::MAX;
  const Shape &x = layer.bottom_shape(), &y = layer.top_shape();
  if (x[2] % y[2] == 0 && x[3] % y[3] == 0) {
    return layer.write("Pooling", {layer.bottom()}, [&](LayerParameter* to) {
      PoolingParameter& p = *to->mutable_pooling_param();
      p.set_pool(largest ? PoolingParameter::MAX : PoolingParameter::AVE);
      if (y[2] == 1 && y[3] == 1) return p.set_global_pooling(true);
      const auto high = static_cast<uint32_t>(x[2] / y[2]),
                 wide = static_cast<uint32_t>(x[3] / y[3]);
      p.set_kernel_h(high);
      p.set_kernel_w(wide);
      p.set_stride_h(high);
      p.set_stride_w(wide);
    });
  }
  if (largest)
    layer.refuse(cat("its windows over ", x[2], "x", x[3], " have different sizes"),
                 "choose an output size that divides the image's");
  write_weighted(layer, means_of_parts(y[2], x[2]), means_of_parts(y[3], x[3]));
}
REWRITE_LAYER(AdaptivePooling, rewrite_adaptive_pooling);

// A pyramid of poolings, one after another.
void rewrite_spp(LayerRewrite& layer) {
  const SPPParameter& p = layer.message().spp_param();
  const Shape x = layer.bottom_shape();
  if (p.pool() == SPPParameter::STOCHASTIC)
    layer.refuse("it is stochastic", "write pool: AVE or pool: MAX");
  std::vector<int> levels;
  for (uint32_t level = 0; level < p.pyramid_height(); ++level) {
    const int64_t cells = int64_t{1} << level;
    const int pooled = layer.add("Pooling", {layer.bottom()}, [&](LayerParameter* to) {
      PoolingParameter& pooling = *to->mutable_pooling_param();
      pooling.set_pool(p.pool() == SPPParameter::MAX ? PoolingParameter::MAX
                                                     : PoolingParameter::AVE);
      const auto size = [&](int64_t extent) { return (extent + cells - 1) / cells; };
      const auto pad = [&](int64_t extent) { return (size(extent) * cells - extent + 1) / 2; };
      pooling.set_kernel_h(static_cast<uint32_t>(size(x[2])));
      pooling.set_kernel_w(static_cast<uint32_t>(size(x[3])));
      pooling.set_stride_h(static_cast<uint32_t>(size(x[2])));
      pooling.set_stride_w(static_cast<uint32_t>(size(x[3])));
      if (pad(x[2]) == 0 && pad(x[3]) == 0) return;
      pooling.set_pad_h(static_cast<uint32_t>(pad(x[2])));
      pooling.set_pad_w(static_cast<uint32_t>(pad(x[3])));
    });
    if (p.pyramid_height() == 1) return write_reshaped(layer, pooled, layer.top_shape());
    levels.push_back(reshaped(layer, pooled, {x[0], x[1] * cells * cells}));
  }
  layer.write("Concat", levels);
}
REWRITE_LAYER(SPP, rewrite_spp);

void rewrite_attention(LayerRewrite& layer) {
  layer.refuse("it multiplies two computed matrices",
               "there is no way to write it in Caffe's files; ONNX has one (-to onnx)");
}
REWRITE_LAYER(MultiHeadAttention, rewrite_attention);

}  // namespace
}  // namespace crema
