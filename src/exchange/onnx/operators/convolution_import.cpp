// Convolutions.
#include <algorithm>

#include "exchange/onnx/operators/windows.h"
#include "proto/params/convolution.pb.h"

namespace crema {
namespace {

void fill_convolution(const OnnxWindows& w, const std::vector<int64_t>& pad, int64_t outputs,
                      int64_t groups, bool bias, LayerParameter* layer) {
  ConvolutionParameter* const p = layer->mutable_convolution_param();
  p->set_num_output(static_cast<uint32_t>(outputs));
  if (!bias) p->set_bias_term(false);
  set_extents(pad, 0, p->mutable_pad());
  set_extents(w.kernel, 0, p->mutable_kernel_size());
  set_extents(w.stride, 1, p->mutable_stride());
  if (groups != 1) p->set_group(static_cast<uint32_t>(groups));
  set_extents(w.dilation, 1, p->mutable_dilation());
}

struct ConvolutionWeights {
  Shape shape;
  std::vector<int64_t> kernel;
  int64_t groups = 1;
  std::vector<LayerBlob> blobs;
};

// Filters are along the first axis of the weights or, transposed, along the second.
ConvolutionWeights read_convolution_weights(OperatorImport& op, bool transposed) {
  ConvolutionWeights weights;
  const OnnxTensor& given = op.constant(1, "the weights");
  weights.shape = given.shape;
  require(given.shape.axes() == op.axes(), "weights of ", given.shape.brief(), " for an input of ",
          op.shape().brief());
  weights.kernel.assign(given.shape.dims().begin() + 2, given.shape.dims().end());
  weights.groups = op.int_of("group", 1);
  require(weights.groups > 0 && op.shape()[1] % weights.groups == 0, "group ", weights.groups,
          " does not divide ", op.shape()[1], " channels");
  const int64_t outputs = transposed ? given.shape[1] * weights.groups : given.shape[0];
  weights.blobs.push_back({given.shape, given.as_floats()});
  if (op.has(2)) {
    const OnnxTensor& bias = op.constant(2, "the bias");
    require(bias.count() == outputs, bias.count(), " values of the bias for ", outputs, " outputs");
    weights.blobs.push_back({Shape{outputs}, bias.as_floats()});
  }
  return weights;
}

// Zero padding that a convolution can take over: of spatial axes, not negative.
const PendingPad* convolution_padding(const ImportValue& value) {
  if (!value.pad || value.pad->value != 0) return nullptr;
  for (size_t axis = 0; axis < value.pad->before.size(); ++axis) {
    const bool none = value.pad->before[axis] == 0 && value.pad->behind[axis] == 0;
    if (axis < 2 && !none) return nullptr;
    if (value.pad->before[axis] < 0 || value.pad->behind[axis] < 0) return nullptr;
  }
  return value.pad.get();
}

// Layers pad both ends alike. If the model does not, the padding is larger, and what it adds to the
// output is cut off: the smallest padding whose windows have those of the model among them.
std::vector<int64_t> padding_with(const OnnxWindows& w) {
  std::vector<int64_t> pad;
  for (size_t i = 0; i < w.axes(); ++i) {
    const int64_t more = std::max<int64_t>(w.behind[i] - w.before[i], 0);
    pad.push_back(w.before[i] + (more + w.stride[i] - 1) / w.stride[i] * w.stride[i]);
  }
  return pad;
}

void read_conv(OperatorImport& op) {
  const ConvolutionWeights weights = read_convolution_weights(op, false);
  require(weights.shape[1] * weights.groups == op.shape()[1], "weights of ", weights.shape.brief(),
          " in ", weights.groups, " groups for ", op.shape()[1], " channels");
  const PendingPad* const pending = convolution_padding(op.value(0));
  const OnnxWindows w = read_onnx_windows(op, weights.kernel, pending);
  const std::string x = pending ? op.unpadded(0) : op.blob(0);
  const std::vector<int64_t> pad = padding_with(w);
  std::string y = op.layer(
      "Convolution", {x},
      [&](LayerParameter* layer) {
        fill_convolution(w, pad, weights.shape[0], weights.groups, op.has(2), layer);
      },
      weights.blobs);
  for (size_t i = 0; i < w.axes(); ++i) {
    const int64_t first = (pad[i] - w.before[i]) / w.stride[i];
    y = op.cut(y, static_cast<int>(i) + 2, first, first + w.outputs[i]);
  }
  op.give(y);
}
IMPORT_OPERATOR(Conv, read_conv);

// The padding of a transposed convolution cuts its output.
void read_conv_transpose(OperatorImport& op) {
  const ConvolutionWeights weights = read_convolution_weights(op, true);
  require(weights.shape[0] == op.shape()[1], "weights of ", weights.shape.brief(), " for ",
          op.shape()[1], " channels");
  OnnxWindows w = read_onnx_windows(op, weights.kernel, nullptr);
  std::vector<int64_t> added = op.ints_of("output_padding");
  added.resize(w.axes());
  const std::vector<int64_t> wanted = op.ints_of("output_shape");
  const std::string how = op.string_of("auto_pad", "NOTSET");
  std::vector<int64_t> pad, first, outputs;
  for (size_t i = 0; i < w.axes(); ++i) {
    const int64_t extent = op.shape()[static_cast<int>(i) + 2];
    const int64_t whole = w.stride[i] * (extent - 1) + w.span(i);
    int64_t before = w.before[i], behind = w.behind[i];
    const bool same = how == "SAME_UPPER" || how == "SAME_LOWER";
    if (!wanted.empty() || same) {
      const int64_t size =
          wanted.empty() ? extent * w.stride[i] : wanted[wanted.size() - w.axes() + i];
      const int64_t all = whole + added[i] - size;
      before = how == "SAME_UPPER" ? all / 2 : all - all / 2;
      behind = all - before;
    }
    behind -= added[i];
    require(before >= 0 && behind >= 0,
            "output_padding and output_shape reach beyond what the windows write");
    pad.push_back(std::min(before, behind));
    first.push_back(before - pad.back());
    outputs.push_back(whole - before - behind);
  }
  std::string y = op.layer(
      "Deconvolution", {op.blob(0)},
      [&](LayerParameter* layer) {
        fill_convolution(w, pad, weights.shape[1] * weights.groups, weights.groups, op.has(2),
                         layer);
      },
      weights.blobs);
  for (size_t i = 0; i < w.axes(); ++i)
    y = op.cut(y, static_cast<int>(i) + 2, first[i], first[i] + outputs[i]);
  op.give(y);
}
IMPORT_OPERATOR(ConvTranspose, read_conv_transpose);

}  // namespace
}  // namespace crema
