// Convolutions and inner products: other names and fields of the same.
#include <cmath>

#include "exchange/caffe/fields.h"
#include "exchange/caffe/rewrites/parts.h"
#include "exchange/weight_matrices.h"
#include "layers/vision/spatial_params.h"
#include "proto/params/convolution.pb.h"
#include "proto/params/dense.pb.h"
#include "proto/params/forks_yolo.pb.h"
#include "proto/params/modern_shape.pb.h"

namespace crema {
namespace {

// The fields of a convolution in the form that all readers know.
void rewrite_as(LayerRewrite& layer, const std::string& type, bool depthwise) {
  if (layer.bottoms() > 1) {
    for (int i = 0; i < layer.bottoms(); ++i) {
      layer.write(
          type, {layer.bottom(i)},
          [&](LayerParameter* to) {
            *to->mutable_convolution_param() = layer.message().convolution_param();
          },
          layer.blobs(), i);
    }
    return;
  }
  const SpatialParams s = spatial_params(layer.message().convolution_param(), layer.bottom_shape());
  const int64_t channels = layer.bottom_shape()[s.axis];
  layer.write_changed(
      type,
      [&](LayerParameter* to) {
        ConvolutionParameter& p = *to->mutable_convolution_param();
        set_kernel(s.kernel, s.stride, s.pad, s.dilation, &p);
        p.clear_type();
        if (depthwise) p.set_group(static_cast<uint32_t>(channels));
        if (p.axis() < 0) p.set_axis(s.axis);
      },
      layer.blobs());
}
void rewrite_convolution(LayerRewrite& layer) { rewrite_as(layer, "Convolution", false); }
void rewrite_depthwise(LayerRewrite& layer) { rewrite_as(layer, "Convolution", true); }
void rewrite_deconvolution(LayerRewrite& layer) { rewrite_as(layer, "Deconvolution", false); }
REWRITE_LAYER(Convolution, rewrite_convolution);
REWRITE_LAYER(Convolution3D, rewrite_convolution);
REWRITE_LAYER(NdConvolution, rewrite_convolution);
REWRITE_LAYER(ConvolutionDepthwise, rewrite_depthwise);
REWRITE_LAYER(DepthwiseConvolution, rewrite_depthwise);
REWRITE_LAYER(Deconvolution, rewrite_deconvolution);
REWRITE_LAYER(Deconvolution3D, rewrite_deconvolution);

std::vector<float> turned(const std::vector<float>& weights, int64_t rows) {
  const int64_t columns = static_cast<int64_t>(weights.size()) / rows;
  std::vector<float> result(weights.size());
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      result[column * rows + row] = weights[row * columns + column];
  return result;
}

// The same product with weights stored as outputs by inputs, of rows of length 1 where `normalize`
// says so.
void rewrite_inner_product(LayerRewrite& layer) {
  const InnerProductParameter p = layer.message().inner_product_param();
  if (layer.bottoms() > 1)
    layer.refuse("its weights are computed",
                 "give it weights of its own; products of two computed blobs are not in the files");
  const auto outputs = static_cast<int64_t>(p.num_output());
  std::vector<CaffeBlob> blobs = layer.blobs();
  if (p.normalize()) blobs[0] = {blobs[0].shape, unit_rows(blobs[0].copy(), outputs)};
  const int64_t inputs = blobs[0].shape.count() / outputs;
  const bool turns = p.transpose() &&
                     !layer.dialect().has_field("InnerProduct", "inner_product_param", "transpose");
  if (turns) blobs[0] = {{outputs, inputs}, turned(blobs[0].copy(), inputs)};
  const auto change = [&](LayerParameter* to) {
    to->mutable_inner_product_param()->clear_normalize();
    if (turns) to->mutable_inner_product_param()->clear_transpose();
  };
  const Shape x = layer.bottom_shape();
  const int axis = x.canonical_axis(p.axis());
  if (layer.type() != "InnerProduct" || p.normalize() || turns || axis == 1)
    return layer.write_changed("InnerProduct", change, std::move(blobs));
  // Rows from another axis on, for readers that know axis 1 only.
  const int rows = reshaped(layer, layer.bottom(), {x.count(0, axis), x.count(axis)});
  const int y = layer.add(
      "InnerProduct", {rows},
      [&](LayerParameter* to) {
        *to->mutable_inner_product_param() = p;
        to->mutable_inner_product_param()->clear_axis();
      },
      std::move(blobs));
  write_reshaped(layer, y, layer.top_shape());
}
REWRITE_LAYER(InnerProduct, rewrite_inner_product);
REWRITE_LAYER(SparseInnerProduct, rewrite_inner_product);

// A group of channels becomes a square of pixels: each of them places its value by one weight.
void rewrite_pixel_shuffle(LayerRewrite& layer) {
  const int64_t side = layer.message().pixel_shuffle_param().upscale_factor();
  const Shape& x = layer.bottom_shape();
  std::vector<float> weights(x[1] * side * side);
  for (int64_t channel = 0; channel < x[1]; ++channel)
    weights[channel * side * side + channel % (side * side)] = 1;
  const int64_t outputs = x[1] / (side * side);
  layer.write("Deconvolution", {layer.bottom()},
              convolution(outputs, {side, side}, {side, side}, outputs),
              {{{x[1], 1, side, side}, std::move(weights)}});
}
REWRITE_LAYER(PixelShuffle, rewrite_pixel_shuffle);

// Darknet's reorganization. Without `reverse` it reads the blob as if it had fewer channels and
// larger images.
void rewrite_reorg(LayerRewrite& layer) {
  const ReorgParameter& p = layer.message().reorg_param();
  const Shape& x = layer.bottom_shape();
  const int64_t side = p.stride(), taps = side * side;
  const int64_t many = x[1], few = x[1] / taps;
  // weights[of many][of few]: channel (tap, c) belongs to tap `tap` of channel c.
  std::vector<float> weights(many * few * taps);
  for (int64_t tap = 0; tap < taps; ++tap)
    for (int64_t c = 0; c < few; ++c) weights[((tap * few + c) * few + c) * taps + tap] = 1;
  const CaffeBlob blob({many, few, side, side}, std::move(weights));
  if (p.reverse()) {
    return layer.write("Deconvolution", {layer.bottom()},
                       convolution(few, {side, side}, {side, side}, 1), {blob});
  }
  const int image = reshaped(layer, layer.bottom(), {x[0], few, x[2] * side, x[3] * side});
  const int y =
      layer.add("Convolution", {image}, convolution(many, {side, side}, {side, side}, 1), {blob});
  write_reshaped(layer, y, layer.top_shape());
}
REWRITE_LAYER(Reorg, rewrite_reorg);

// Patches as channels: a convolution of each channel with filters that pick one tap each.
void rewrite_im2col(LayerRewrite& layer) {
  const SpatialParams s = spatial_params(layer.message().convolution_param(), layer.bottom_shape());
  if (s.axis != 1) layer.refuse("its channels are not axis 1", "write axis: 1");
  const int64_t channels = layer.bottom_shape()[1];
  int64_t taps = 1;
  for (const int64_t extent : s.kernel) taps *= extent;
  std::vector<float> filters(channels * taps * taps);
  for (int64_t i = 0; i < channels * taps; ++i) filters[i * taps + i % taps] = 1;
  std::vector<int64_t> extents = {channels * taps, 1};
  extents.insert(extents.end(), s.kernel.begin(), s.kernel.end());
  layer.write("Convolution", {layer.bottom()},
              [&](LayerParameter* to) {
                ConvolutionParameter& p = *to->mutable_convolution_param();
                p.set_num_output(static_cast<uint32_t>(channels * taps));
                p.set_bias_term(false);
                p.set_group(static_cast<uint32_t>(channels));
                set_kernel(s.kernel, s.stride, s.pad, s.dilation, &p);
              },
              {{Shape(extents), std::move(filters)}});
}
REWRITE_LAYER(Im2col, rewrite_im2col);

}  // namespace
}  // namespace crema
