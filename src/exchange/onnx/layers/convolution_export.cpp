// Convolutions and matrix products with learned weights.
#include "exchange/onnx/layer_export.h"
#include "exchange/weight_matrices.h"
#include "layers/vision/spatial_params.h"
#include "proto/params/convolution.pb.h"
#include "proto/params/dense.pb.h"

namespace crema {
namespace {

std::vector<int64_t> twice(const std::vector<int64_t>& pads) {
  std::vector<int64_t> both = pads;
  both.insert(both.end(), pads.begin(), pads.end());
  return both;
}

// One operator for each bottom: all have the same weights.
void write_convolution(LayerExport& layer, const char* op, bool depthwise) {
  const ConvolutionParameter& p = layer.message().convolution_param();
  const SpatialParams spatial = spatial_params(p, layer.bottom_shape());
  const int64_t groups = depthwise ? layer.bottom_shape()[spatial.axis] : p.group();
  const OnnxAttributes settings = {{"kernel_shape", spatial.kernel},
                                   {"strides", spatial.stride},
                                   {"pads", twice(spatial.pad)},
                                   {"dilations", spatial.dilation},
                                   {"group", groups}};
  std::vector<std::string> inputs = {"", layer.weights()};
  if (layer.parameters() > 1) inputs.push_back(layer.bias());
  for (int i = 0; i < layer.bottoms(); ++i) {
    if (spatial.axis == 1) {
      inputs[0] = layer.rounded(layer.bottom(i));
      layer.write(op, inputs, settings, i);
      continue;
    }
    // The axes before the channels are samples.
    const Shape& x = layer.bottom_shape(i);
    std::vector<int64_t> image(x.dims().begin() + spatial.axis, x.dims().end());
    image.insert(image.begin(), -1);
    inputs[0] = layer.rounded(layer.reshape(layer.bottom(i), image));
    layer.reshape_to_top(layer.node(op, inputs, settings), i);
  }
}
void write_plain_convolution(LayerExport& layer) { write_convolution(layer, "Conv", false); }
void write_depthwise_convolution(LayerExport& layer) { write_convolution(layer, "Conv", true); }
void write_deconvolution(LayerExport& layer) { write_convolution(layer, "ConvTranspose", false); }
EXPORT_LAYER(Convolution, write_plain_convolution);
EXPORT_LAYER(Convolution3D, write_plain_convolution);
EXPORT_LAYER(NdConvolution, write_plain_convolution);
EXPORT_LAYER(ConvolutionDepthwise, write_depthwise_convolution);
EXPORT_LAYER(DepthwiseConvolution, write_depthwise_convolution);
EXPORT_LAYER(Deconvolution, write_deconvolution);
EXPORT_LAYER(Deconvolution3D, write_deconvolution);

// Weights and bias that are bottoms.
void write_given_product(LayerExport& layer, bool transposed) {
  const int64_t outputs = layer.top_shape()[layer.top_shape().axes() - 1];
  const int64_t inputs = layer.bottom_shape(1).count() / outputs;
  std::string weights = transposed ? layer.reshape(layer.bottom(1), {inputs, outputs})
                                   : layer.reshape(layer.bottom(1), {outputs, inputs});
  const std::string x = layer.reshape(layer.bottom(), {-1, inputs});
  std::vector<std::string> operands = {x, weights};
  if (layer.bottoms() > 2) operands.push_back(layer.reshape(layer.bottom(2), {outputs}));
  if (layer.parameters() > 0) operands.push_back(layer.parameter(0));
  const std::string y = layer.node("Gemm", operands, {{"transB", int64_t{!transposed}}});
  layer.reshape_to_top(y);
}

void write_inner_product(LayerExport& layer) {
  const InnerProductParameter& p = layer.message().inner_product_param();
  if (layer.bottoms() > 1) return write_given_product(layer, p.transpose());
  const Shape& x = layer.bottom_shape();
  const int axis = x.canonical_axis(p.axis());
  const std::string weights =
      p.normalize() ? layer.floats(layer.parameter_shape(0).dims(),
                                   unit_rows(layer.parameter_values(0), p.num_output()))
                    : layer.weights();
  std::string rows = layer.bottom();
  if (x.axes() != 2 || axis != 1) {
    rows = axis == 1 ? layer.node("Flatten", {rows}, {{"axis", int64_t{1}}})
                     : layer.reshape(rows, {-1, x.count(axis)});
  }
  std::vector<std::string> inputs = {layer.rounded(rows), weights};
  if (layer.parameters() > 1) inputs.push_back(layer.bias());
  const OnnxAttributes settings = {{"transB", int64_t{!p.transpose()}}};
  if (axis == 1) return layer.write("Gemm", inputs, settings);
  layer.reshape_to_top(layer.node("Gemm", inputs, settings));
}
EXPORT_LAYER(InnerProduct, write_inner_product);
EXPORT_LAYER(SparseInnerProduct, write_inner_product);

// Patches as channels: a convolution of each channel with filters that pick one tap each.
void write_im2col(LayerExport& layer) {
  const ConvolutionParameter& p = layer.message().convolution_param();
  const SpatialParams spatial = spatial_params(p, layer.bottom_shape());
  if (spatial.axis != 1) layer.refuse("its channels are not axis 1", "write axis: 1");
  const int64_t channels = layer.bottom_shape()[1];
  int64_t taps = 1;
  for (const int64_t extent : spatial.kernel) taps *= extent;
  std::vector<float> filters(channels * taps * taps);
  for (int64_t i = 0; i < channels * taps; ++i) filters[i * taps + i % taps] = 1;
  std::vector<int64_t> shape = {channels * taps, 1};
  shape.insert(shape.end(), spatial.kernel.begin(), spatial.kernel.end());
  layer.write("Conv", {layer.bottom(), layer.floats(shape, filters)},
              {{"kernel_shape", spatial.kernel},
               {"strides", spatial.stride},
               {"pads", twice(spatial.pad)},
               {"dilations", spatial.dilation},
               {"group", channels}});
}
EXPORT_LAYER(Im2col, write_im2col);

}  // namespace
}  // namespace crema
