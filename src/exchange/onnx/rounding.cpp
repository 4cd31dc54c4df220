#include "exchange/onnx/rounding.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace crema {
namespace {

using onnx::TensorProto;

TensorProto::DataType byte_type(float low, float high) {
  if (low == -128 && high == 127) return TensorProto::INT8;
  if (low == 0 && high == 255) return TensorProto::UINT8;
  fail("quantization_param has integers from ", low, " to ", high,
       ", but ONNX's have 8 bits; bw_layer_in, bw_layer_out and bw_params must be 8 or 32");
}

// A scalar, or one value for each position along axis 0.
std::string constant_steps(OnnxGraph& graph, const std::string& wish,
                           const std::vector<float>& steps) {
  std::vector<int64_t> shape;
  if (steps.size() > 1) shape.push_back(static_cast<int64_t>(steps.size()));
  return graph.floats(wish, shape, steps);
}

std::string zeros(OnnxGraph& graph, const std::string& wish, size_t count,
                  TensorProto::DataType type) {
  std::vector<int64_t> shape;
  if (count > 1) shape.push_back(static_cast<int64_t>(count));
  return graph.integers(wish, shape, std::vector<int64_t>(count), type);
}

// Integers times steps.
std::string dequantize(OnnxGraph& graph, const std::string& wish, const std::vector<int64_t>& shape,
                       std::vector<int64_t> integers, TensorProto::DataType type,
                       const std::vector<float>& steps) {
  require(steps.size() == 1 || graph.opset() >= 13,
          "weights whose rows have different steps need -opset 13 or later");
  const std::string stored = graph.integers(wish + ".integers", shape, std::move(integers), type),
                    by = constant_steps(graph, wish + ".step", steps),
                    zero = zeros(graph, wish + ".zero", steps.size(), type),
                    value = graph.unique(wish);
  OnnxAttributes axis;
  if (steps.size() > 1) axis.push_back({"axis", int64_t{0}});
  graph.add("DequantizeLinear", {stored, by, zero}, {value}, axis);
  return value;
}

}  // namespace

std::string round_values(OnnxGraph& graph, const std::string& x, const QuantizedValues& values) {
  std::string& rounded =
      graph.shared_value(cat(x, " ", std::bit_cast<uint32_t>(values.step), " ", values.low));
  if (!rounded.empty()) return rounded;
  rounded = graph.unique(x + ".rounded");
  write_rounded(graph, x, rounded, values);
  return rounded;
}

void write_rounded(OnnxGraph& graph, const std::string& x, const std::string& to,
                   const QuantizedValues& values) {
  const TensorProto::DataType type = byte_type(values.low, values.high);
  const std::string step = constant_steps(graph, x + ".step", {values.step}),
                    zero = zeros(graph, x + ".zero", 1, type),
                    integers = graph.unique(x + ".integers");
  graph.add("QuantizeLinear", {x, step, zero}, {integers});
  graph.add("DequantizeLinear", {integers, step, zero}, {to});
}

std::string round_rows(OnnxGraph& graph, const std::string& wish, const Shape& shape,
                       const std::vector<float>& weights, const QuantizedWeights& quantized) {
  require(quantized.low >= -128 && quantized.high <= 127,
          "bw_params is more than 8 bits, which ONNX "
          "models of integers have");
  const int64_t size = shape.count(1);
  if (quantized.follows()) {
    QuantizedWeights found = quantized;
    for (int64_t row = 0; row < shape[0]; ++row) {
      float most = 0;
      for (int64_t i = row * size; i < (row + 1) * size; ++i)
        most = std::max(most, std::abs(weights[static_cast<size_t>(i)]));
      found.steps.push_back(most > 0 ? most / quantized.high : 1);
    }
    return round_rows(graph, wish, shape, weights, found);
  }
  std::vector<int64_t> integers;
  for (size_t i = 0; i < weights.size(); ++i) {
    const float n = std::rint(weights[i] / quantized.step(i / static_cast<size_t>(size)));
    integers.push_back(static_cast<int64_t>(std::clamp(n, quantized.low, quantized.high)));
  }
  return dequantize(graph, wish, shape.dims(), std::move(integers), TensorProto::INT8,
                    quantized.steps);
}

std::string round_bias(OnnxGraph& graph, const std::string& wish, const std::vector<float>& bias,
                       const LinearQuantization& quantization) {
  std::vector<float> steps;
  for (const float step : quantization.w->steps) steps.push_back(quantization.x->step * step);
  std::vector<int64_t> integers;
  for (size_t i = 0; i < bias.size(); ++i) {
    const float step = steps[steps.size() > 1 ? i : 0], n = std::rint(bias[i] / step);
    if (!(std::abs(n) < 0x1p31f) || n * step != bias[i])
      return graph.floats(wish, {static_cast<int64_t>(bias.size())}, bias);
    integers.push_back(static_cast<int64_t>(n));
  }
  return dequantize(graph, wish, {static_cast<int64_t>(bias.size())}, std::move(integers),
                    TensorProto::INT32, steps);
}

}  // namespace crema
