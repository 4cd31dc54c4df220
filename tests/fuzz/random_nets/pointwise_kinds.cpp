#include "base/error.h"
#include "fuzz/random_nets/layer_kinds.h"

namespace crema::tests {
namespace {

using Blobs = std::vector<int>;

template <const char* kType>
Blobs plain(NetWriter& w, int b) {
  return {w.add_pointwise(kType, b)};
}

constexpr char kAbsVal[] = "AbsVal", kBnll[] = "BNLL", kMish[] = "Mish", kRelu6[] = "ReLU6",
               kSelu[] = "SELU", kSilu[] = "SiLU", kSigmoid[] = "Sigmoid", kTanh[] = "TanH",
               kHardSwish[] = "HardSwish";

Blobs relu(NetWriter& w, int b) {
  return {w.add_pointwise(
      "ReLU", b,
      w.maybe(70) ? "" : cat("relu_param { negative_slope: ", w.number(0.05, 0.4), " }"))};
}
Blobs elu(NetWriter& w, int b) {
  return {w.add_pointwise("ELU", b, cat("elu_param { alpha: ", w.number(0.3, 1.5), " }"))};
}
Blobs gelu(NetWriter& w, int b) {
  return {w.add_pointwise("GELU", b, w.maybe(50) ? "" : "gelu_param { approximate: true }")};
}
Blobs hard_sigmoid(NetWriter& w, int b) {
  return {w.add_pointwise("HardSigmoid", b,
                          cat("hard_sigmoid_param { alpha: ", w.number(0.1, 0.7), " }"))};
}
Blobs swish(NetWriter& w, int b) {
  return {w.add_pointwise("Swish", b, cat("swish_param { beta: ", w.number(0.5, 2), " }"))};
}
Blobs clip(NetWriter& w, int b) {
  return {w.add_pointwise(
      "Clip", b,
      cat("clip_param { min: ", w.number(-1.5, -0.3), " max: ", w.number(0.3, 2), " }"))};
}
Blobs power(NetWriter& w, int b) {
  const std::string scale = cat(" scale: ", w.number(-1, 1.2));
  if (w.maybe(50))
    return {w.add_pointwise("Power", b,
                            cat("power_param {", scale, " shift: ", w.number(-1, 1), " }"))};
  if (w.maybe(50))
    return {w.add_pointwise(
        "Power", b, cat("power_param { power: 2 scale: 0.5 shift: ", w.number(-1, 1), " }"))};
  const int positive = w.add_pointwise("Sigmoid", b);
  return {w.add_pointwise("Power", positive,
                          cat("power_param { power: ", w.number(-1, 2.5),
                              " scale: ", w.number(0.5, 2), " shift: 0.5 }"))};
}
Blobs exponential(NetWriter& w, int b) {
  const int bounded = w.add_pointwise("TanH", b);
  return {w.add_pointwise("Exp", bounded, w.maybe(50) ? "" : "exp_param { base: 2 scale: 1.5 }")};
}
Blobs logarithm(NetWriter& w, int b) {
  const int positive = w.add_pointwise("Sigmoid", b);
  return {w.add_pointwise(
      "Log", positive, cat("log_param { scale: 1.5 shift: 0.2 ", w.maybe(50) ? "base: 2 }" : "}"))};
}
Blobs dropout(NetWriter& w, int b) {
  return {w.add_pointwise("Dropout", b,
                          w.maybe(30) ? ""
                                      : cat("dropout_param { dropout_ratio: ", w.number(0.1, 0.6),
                                            w.maybe(20) ? " scale_train: false }" : " }"))};
}
Blobs spatial_dropout(NetWriter& w, int b) {
  if (w.shape(b).axes() < 2) return {};
  return {w.add_pointwise("SpatialDropout", b, "spatial_dropout_param { dropout_ratio: 0.3 }")};
}
Blobs prelu(NetWriter& w, int b) {
  if (w.shape(b).axes() < 2) return {};
  return {w.add_learned(
      "PReLU", {b}, w.maybe(60) ? "" : "prelu_param { channel_shared: true filler { value: 0.1 } }",
      1, true)};
}
Blobs scale(NetWriter& w, int b) {
  const int axes = w.shape(b).axes();
  if (axes < 2) return {};
  const bool bias = w.maybe(60);
  std::string params = "scale_param { filler { type: 'uniform' min: 0.5 max: 1.5 } ";
  if (bias) params += "bias_term: true ";
  if (w.maybe(20))
    params += "num_axes: 0 ";
  else if (w.maybe(25))
    params += cat("axis: ", axes - 1, " ");
  else if (axes > 2 && w.maybe(25))
    params += "axis: 1 num_axes: 2 ";
  return {w.add_learned("Scale", {b}, params + "}", bias ? 2 : 1, true)};
}
Blobs bias(NetWriter& w, int b) {
  if (w.shape(b).axes() < 2) return {};
  return {
      w.add_learned("Bias", {b}, "bias_param { filler { type: 'gaussian' std: 0.3 } }", 1, true)};
}
// The factors or summands are another blob's.
Blobs two_bottoms(NetWriter& w, int b) {
  const Shape shape = w.shape(b);
  const int other = w.find([&](int i) {
    const Shape& few = w.shape(i);
    if (i == b || few.axes() == 0 || few.axes() > shape.axes()) return false;
    for (int axis = 0; axis < few.axes(); ++axis) {
      if (few[axis] != shape[axis]) return false;
    }
    return true;
  });
  if (other < 0) return {};
  if (w.maybe(50)) return {w.add("Scale", {b, other}, "scale_param { axis: 0 }")};
  return {w.add("Bias", {b, other}, "bias_param { axis: 0 }")};
}
Blobs eltwise(NetWriter& w, int b) {
  const Shape shape = w.shape(b);
  Blobs bottoms{b};
  for (int more = w.between(1, 2); more > 0; --more) {
    const int other = w.find([&](int i) {
      return w.shape(i) == shape && std::find(bottoms.begin(), bottoms.end(), i) == bottoms.end();
    });
    if (other >= 0) bottoms.push_back(other);
  }
  if (bottoms.size() == 1) {
    const int other = w.add("TanH", {b});
    bottoms.insert(bottoms.begin() + w.between(0, 1), other);
  }
  const bool twice = w.maybe(6);  // one blob as two bottoms
  if (twice) bottoms.push_back(bottoms[0]);
  const int kind = w.between(0, 9);
  std::string params;
  if (kind < 2) {
    params = "eltwise_param { operation: PROD }";
  } else if (kind < 4 && !twice) {
    params = "eltwise_param { operation: MAX }";
  } else if (kind < 6) {
    params = "eltwise_param {";
    for (size_t i = 0; i < bottoms.size(); ++i) params += cat(" coeff: ", w.number(-1, 1.5));
    params += " }";
  }
  return {w.add("Eltwise", bottoms, params)};
}
Blobs softmax(NetWriter& w, int b) {
  const int axes = w.shape(b).axes();
  if (axes < 2) return {};
  return {w.add_pointwise("Softmax", b,
                          cat("softmax_param { axis: ", w.between(w.maybe(90), axes - 1), " }"))};
}
// Gates of a squeeze-and-excitation block.
Blobs axpy(NetWriter& w, int b) {
  const Shape shape = w.shape(b);
  if (!is_image(shape)) return {};
  const int other = w.find([&](int i) { return i != b && w.shape(i) == shape; });
  if (other < 0) return {};
  const int pooled = w.add("Pooling", {b}, "pooling_param { pool: AVE global_pooling: true }");
  const int gate = w.add("Sigmoid", {pooled});
  return {w.add("Axpy", {gate, b, other})};
}
Blobs channel_scale(NetWriter& w, int b) {
  const Shape shape = w.shape(b);
  if (shape.axes() < 2) return {};
  const int factor = w.add("Reduction", {b}, "reduction_param { operation: MEAN axis: 1 }");
  const int column = w.add("Reshape", {factor}, "reshape_param { shape { dim: 0 dim: 1 } }");
  if (shape.axes() != 2) return {column};
  return {w.add("ChannelScale", {b, column})};
}

}  // namespace

const std::vector<LayerKind>& pointwise_kinds() {
  static const std::vector<LayerKind> kinds = {
      {"ReLU", 24, relu},
      {"Eltwise", 20, eltwise},
      {"Scale", 8, scale},
      {"Dropout", 6, dropout},
      {"PReLU", 6, prelu},
      {"Bias", 4, bias},
      {"Scale and Bias of two bottoms", 5, two_bottoms},
      {"Power", 6, power},
      {"Sigmoid", 4, plain<kSigmoid>},
      {"TanH", 4, plain<kTanh>},
      {"ELU", 3, elu},
      {"GELU", 3, gelu},
      {"Swish", 2, swish},
      {"SiLU", 2, plain<kSilu>},
      {"Mish", 2, plain<kMish>},
      {"ReLU6", 3, plain<kRelu6>},
      {"SELU", 2, plain<kSelu>},
      {"HardSigmoid", 2, hard_sigmoid},
      {"HardSwish", 2, plain<kHardSwish>},
      {"Clip", 2, clip},
      {"AbsVal", 2, plain<kAbsVal>},
      {"BNLL", 2, plain<kBnll>},
      {"Exp", 2, exponential},
      {"Log", 2, logarithm},
      {"Softmax", 3, softmax},
      {"SpatialDropout", 2, spatial_dropout},
      {"Axpy", 3, axpy},
      {"ChannelScale", 2, channel_scale},
  };
  return kinds;
}

const LayerKind& pick(Dice& dice, const std::vector<LayerKind>& kinds) {
  int all = 0;
  for (const LayerKind& kind : kinds) all += kind.weight;
  int at = static_cast<int>(dice.below(static_cast<size_t>(all)));
  for (const LayerKind& kind : kinds) {
    at -= kind.weight;
    if (at < 0) return kind;
  }
  return kinds.back();
}

std::string weight_filler(NetWriter& w) {
  const char* const fillers[] = {"type: 'xavier'", "type: 'msra'", "type: 'gaussian' std: 0.3"};
  return cat("weight_filler { ", fillers[w.between(0, 2)], " }");
}

std::string bias_filler(NetWriter& w) {
  return w.maybe(30) ? "bias_filler { value: 0.2 }"
                     : "bias_filler { type: 'uniform' min: -0.3 max: 0.3 }";
}

}  // namespace crema::tests
