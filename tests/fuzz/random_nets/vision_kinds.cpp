#include "base/error.h"
#include "fuzz/random_nets/layer_kinds.h"

namespace crema::tests {
namespace {

using Blobs = std::vector<int>;

int outputs(NetWriter& w) {
  const int choices[] = {1, 2, 3, 4, 5, 6, 8, 8, 12, 16, 16, 16, 24, 32};
  return choices[w.between(0, 13)];
}

bool has_places(const Shape& shape) { return shape.axes() >= 3 && shape.axes() <= 5; }

// Kernel, stride, pad and dilation for which the output has an extent of at least 1.
std::string window(NetWriter& w, const Shape& shape, bool transposed) {
  int64_t least = 100;
  for (int axis = 2; axis < shape.axes(); ++axis) least = std::min(least, shape[axis]);
  const int kernel = w.maybe(25) ? 1 : w.maybe(60) ? 3 : w.between(2, 5);
  const int dilation = kernel > 1 && w.maybe(15) ? 2 : 1;
  const int extent = dilation * (kernel - 1) + 1;
  int pad = w.maybe(60) ? extent / 2 : w.between(0, extent - 1);
  while (!transposed && least + 2 * pad < extent) ++pad;
  if (transposed) pad = w.between(0, (extent - 1) / 2);
  const int stride = w.maybe(70) ? 1 : w.between(2, 3);
  std::string text = cat("kernel_size: ", kernel);
  if (pad > 0) text += cat(" pad: ", pad);
  if (stride > 1) text += cat(" stride: ", stride);
  if (dilation > 1) text += cat(" dilation: ", dilation);
  return text;
}

Blobs convolution(NetWriter& w, int b) {
  const Shape shape = w.shape(b);
  if (!has_places(shape)) return {};
  const int channels = static_cast<int>(shape[1]);
  int out = outputs(w), group = 1;
  if (w.maybe(25)) {
    group = channels;  // depthwise
    out = channels * (w.maybe(75) ? 1 : 2);
  } else if (w.maybe(20) && channels % 2 == 0) {
    group = channels % 4 == 0 && w.maybe(30) ? 4 : 2;
    out = group * w.between(1, 4);
  }
  const bool bias = w.maybe(60);
  std::string params = cat("convolution_param { num_output: ", out, " ", window(w, shape, false),
                           " ", weight_filler(w));
  if (group > 1) params += cat(" group: ", group);
  params += bias ? " " + bias_filler(w) : " bias_term: false";
  return {w.add_learned("Convolution", {b}, params + " }", bias ? 2 : 1)};
}
// Kernels, strides and pads that differ between the axes.
Blobs uneven_convolution(NetWriter& w, int b) {
  const Shape shape = w.shape(b);
  if (!is_image(shape)) return {};
  const int kh = w.between(1, static_cast<int>(std::min<int64_t>(4, shape[2])));
  const int kw = w.between(1, static_cast<int>(std::min<int64_t>(4, shape[3])));
  return {w.add_learned(
      "Convolution", {b},
      cat("convolution_param { num_output: ", outputs(w), " kernel_h: ", kh, " kernel_w: ", kw,
          " pad_h: ", w.between(0, 1), " pad_w: ", w.between(0, 2), " stride_h: ", w.between(1, 2),
          " stride_w: ", w.between(1, 3), " ", weight_filler(w), " ", bias_filler(w), " }"),
      2)};
}
Blobs deconvolution(NetWriter& w, int b) {
  const Shape shape = w.shape(b);
  if (!has_places(shape) || shape.count() > kMaxCount / 9) return {};
  const int channels = static_cast<int>(shape[1]);
  const bool depthwise = w.maybe(25), bias = w.maybe(60);
  std::string params =
      cat("convolution_param { num_output: ", depthwise ? channels : w.between(1, 8), " ",
          window(w, shape, true), " ", weight_filler(w));
  if (depthwise) params += cat(" group: ", channels);
  params += bias ? " " + bias_filler(w) : " bias_term: false";
  return {w.add_learned("Deconvolution", {b}, params + " }", bias ? 2 : 1)};
}
Blobs deformable(NetWriter& w, int b) {
  if (!is_image(w.shape(b))) return {};
  const int offsets = w.add_learned(
      "Convolution", {b},
      "convolution_param { num_output: 18 kernel_size: 3 pad: 1 weight_filler { type: 'gaussian' "
      "std: 0.1 } bias_filler { type: 'uniform' min: -0.4 max: 0.4 } }",
      2);
  return {w.add_learned("DeformableConvolution", {b, offsets},
                        cat("convolution_param { num_output: ", w.between(1, 6),
                            " kernel_size: 3 pad: 1 ", weight_filler(w), " ", bias_filler(w), " }"),
                        2)};
}
Blobs pooling(NetWriter& w, int b) {
  const Shape shape = w.shape(b);
  if (!has_places(shape)) return {};
  const int kind = w.between(0, 9);
  int from = b;
  std::string params = "pooling_param { ";
  if (kind < 4) {
    params += "pool: AVE ";
    if (w.maybe(20)) params += "avg_include_pad: false ";
  } else if (kind == 9 && is_image(shape)) {
    from = w.add("Sigmoid", {b});  // the values are probabilities
    params += "pool: STOCHASTIC ";
  }
  if (w.maybe(15)) return {w.add("Pooling", {from}, params + "global_pooling: true }")};
  const int kernel = w.between(2, 3), pad = w.maybe(40) && kind != 9 ? 1 : 0;
  int64_t least = 100;
  for (int axis = 2; axis < shape.axes(); ++axis) least = std::min(least, shape[axis]);
  if (least < kernel) return {};
  params += cat("kernel_size: ", kernel, " stride: ", w.between(1, kernel), " ");
  if (pad > 0) params += "pad: 1 ";
  if (w.maybe(20))
    params += "ceil_mode: false ";
  else if (w.maybe(20))
    params += "round_mode: FLOOR ";
  if (kind >= 4 && kind < 6 && is_image(shape) && w.maybe(40)) {
    const int first = w.add("Pooling", {from}, params + "}", 2);
    w.add("Silence", {first + 1}, "", 0);
    return {first};
  }
  return {w.add("Pooling", {from}, params + "}")};
}
Blobs adaptive_pooling(NetWriter& w, int b) {
  if (!is_image(w.shape(b))) return {};
  return {w.add("AdaptivePooling", {b},
                cat("adaptive_pooling_param { ", w.maybe(50) ? "pool: MAX " : "",
                    "output_h: ", w.between(1, 4), " output_w: ", w.between(1, 4), " }"))};
}
// Positions of the maxima carry values back to a larger image.
Blobs unpooling(NetWriter& w, int b) {
  const Shape shape = w.shape(b);
  if (!is_image(shape) || shape[2] < 2 || shape[3] < 2) return {};
  const int first = w.add(
      "Pooling", {b}, "pooling_param { pool: MAX kernel_size: 2 stride: 2 ceil_mode: false }", 2);
  const int changed = w.add("TanH", {first});
  return {first, w.add("Unpooling", {changed, first + 1},
                       cat("unpooling_param { unpool: MAX kernel_size: 2 stride: 2 unpool_h: ",
                           shape[2], " unpool_w: ", shape[3], " }"))};
}
Blobs spp(NetWriter& w, int b) {
  const Shape shape = w.shape(b);
  if (!is_image(shape) || shape[2] < 4 || shape[3] < 4) return {};
  return {w.add(
      "SPP", {b},
      cat("spp_param { pyramid_height: ", w.between(1, 2), w.maybe(50) ? " pool: AVE }" : " }"))};
}
Blobs interp(NetWriter& w, int b) {
  const Shape shape = w.shape(b);
  if (!is_image(shape) || shape.count() > kMaxCount / 4) return {};
  if (w.maybe(50))
    return {
        w.add("Interp", {b},
              cat("interp_param { height: ", w.between(1, 8), " width: ", w.between(1, 8), " }"))};
  return {w.add(
      "Upsample", {b},
      cat("upsample_param { scale_h: ", w.between(1, 3), " scale_w: ", w.between(1, 2), " }"))};
}
Blobs im2col(NetWriter& w, int b) {
  const Shape shape = w.shape(b);
  if (!is_image(shape) || shape.count() > kMaxCount / 9 || shape[2] < 2 || shape[3] < 2) return {};
  return {w.add("Im2col", {b},
                cat("convolution_param { kernel_size: 2 pad: ", w.between(0, 1),
                    " stride: ", w.between(1, 2), " }"))};
}
Blobs channels_and_places(NetWriter& w, int b) {
  const Shape shape = w.shape(b);
  if (!is_image(shape)) return {};
  if (shape[1] % 4 == 0 && w.maybe(50))
    return {w.add("PixelShuffle", {b}, "pixel_shuffle_param { upscale_factor: 2 }")};
  if (shape[1] % 4 == 0 && shape[2] % 2 == 0 && shape[3] % 2 == 0)
    return {w.add("Reorg", {b}, "reorg_param { stride: 2 }")};
  if (shape[1] % 2 == 0)
    return {w.add("ShuffleChannel", {b}, "shuffle_channel_param { group: 2 }")};
  return {w.add("Flip", {b}, w.maybe(50) ? "" : "flip_param { flip_height: true }")};
}
Blobs transformer(NetWriter& w, int b) {
  if (!is_image(w.shape(b))) return {};
  const int theta = w.add_learned("InnerProduct", {b},
                                  "inner_product_param { num_output: 6 weight_filler { type: "
                                  "'gaussian' std: 0.01 } bias_filler "
                                  "{ type: 'uniform' min: 0.2 max: 0.7 } }",
                                  2);
  return {w.add("SpatialTransformer", {b, theta})};
}
// A convolution and its statistics, as one branch of a block.
int normalized(NetWriter& w, int b, int outputs, int kind) {
  const int kernel = w.maybe(50) ? 1 : 3;
  const int top =
      w.add_learned("Convolution", {b},
                    cat("convolution_param { num_output: ", outputs, " kernel_size: ", kernel,
                        " pad: ", kernel / 2, " bias_term: false ", weight_filler(w), " }"),
                    1);
  const std::string sync = w.for_ranks ? " sync_bn: true" : "";
  if (kind == 0) return w.add_learned("BN", {top}, cat("bn_param {", sync, " }"), 2);
  const std::string own = kind == 1 ? " scale_bias: true" : "";
  const int norm = w.add_pointwise(
      "BatchNorm", top, cat("batch_norm_param { moving_average_fraction: 0.9", sync, own, " }"));
  if (kind < 3) return norm;
  return w.add_learned("Scale", {norm},
                       "scale_param { bias_term: true bias_filler { value: 0.1 } }", 2, true);
}
int rectified(NetWriter& w, int b) {
  if (w.maybe(12)) return w.add_pointwise("GELU", b);
  return w.add_pointwise("ReLU", b, w.maybe(85) ? "" : "relu_param { negative_slope: 0.1 }");
}
int pooled(NetWriter& w, int b) {
  const Shape shape = w.shape(b);
  if (shape[2] < 3 || shape[3] < 3) return b;
  const int top = w.add("Pooling", {b},
                        w.maybe(50) ? "pooling_param { kernel_size: 2 stride: 2 }"
                                    : "pooling_param { kernel_size: 3 stride: 2 }");
  return w.maybe(30) ? w.add_pointwise("Dropout", top) : top;
}
// As networks are built: convolution, normalization, the sum with another branch, ReLU, pooling.
Blobs block(NetWriter& w, int b) {
  const Shape shape = w.shape(b);
  if (!is_image(shape) || shape.count() / shape[1] < 8) return {};
  const bool residual = w.maybe(50);
  const int out = residual && w.maybe(60) ? static_cast<int>(shape[1]) : outputs(w);
  const int kind = w.between(0, 7);
  int top = normalized(w, b, out, kind);
  Blobs all;
  if (residual) {
    if (w.maybe(10)) all.push_back(top);
    const int other = out == shape[1] && w.maybe(70) ? b : normalized(w, b, out, kind);
    top = w.add("Eltwise", w.maybe(50) ? Blobs{other, top} : Blobs{top, other});
  }
  if (w.maybe(85)) top = rectified(w, top);
  if (w.maybe(30)) top = pooled(w, top);
  all.push_back(top);
  return all;
}
// The layers of older networks.
Blobs chain(NetWriter& w, int b) {
  const Shape shape = w.shape(b);
  if (!is_image(shape)) return {};
  int top = b;
  if (w.maybe(75)) {
    const bool depthwise = w.maybe(20);
    top = w.add_learned(
        depthwise ? "ConvolutionDepthwise" : "Convolution", {b},
        cat("convolution_param { num_output: ", depthwise ? static_cast<int>(shape[1]) : outputs(w),
            " kernel_size: 3 pad: 1 ", weight_filler(w), " ", bias_filler(w), " }"),
        2);
    if (w.maybe(80)) top = rectified(w, top);
    top = pooled(w, top);
  } else {
    top = rectified(w, pooled(w, b));
  }
  return {top};
}

}  // namespace

const std::vector<LayerKind>& vision_kinds() {
  static const std::vector<LayerKind> kinds = {
      {"Convolution", 30, convolution},
      {"block", 16, block},
      {"chain", 10, chain},
      {"Pooling", 16, pooling},
      {"uneven Convolution", 6, uneven_convolution},
      {"Deconvolution", 8, deconvolution},
      {"DeformableConvolution", 1, deformable},
      {"AdaptivePooling", 3, adaptive_pooling},
      {"Unpooling", 2, unpooling},
      {"SPP", 2, spp},
      {"Interp", 3, interp},
      {"Im2col", 2, im2col},
      {"PixelShuffle", 4, channels_and_places},
      {"SpatialTransformer", 1, transformer},
  };
  return kinds;
}

}  // namespace crema::tests
