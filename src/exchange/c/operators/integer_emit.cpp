// QuantizeLinear and DequantizeLinear, and products of 8-bit integers.
#include <algorithm>

#include "exchange/c/operators/window_emit.h"

namespace crema {
namespace {

constexpr int64_t kMostPositions = 16;  // MOST_POSITIONS of conv_int8.c
constexpr int64_t kSummed = 32;         // SUMMED of short_conv_int8.c
// Sums over more taps are faster along these: processors multiply and add four bytes at once.
constexpr int64_t kFewTaps = 64;
// The memory for patches, in bytes, if they are not longer: a part of a level-1 cache.
constexpr int64_t kPatchBytes = 8192;
constexpr int64_t kBehindPatches = 8;  // copy_bytes() writes so many bytes more
// Rows of weights get zeros up to a multiple of this if that adds at most a third: vectors of 32 bytes
// need no care for a rest, which takes longer than they do.
constexpr int64_t kVector = 32;

void require_plain(OperatorEmit& op) {
  require(op.op.has(2) && op.op.is_constant(2) && op.op.number(1, "the step") > 0 &&
              op.op.number(2, "the zero point") == 0,
          "its step or zero point is not one that Crema writes");
}

void emit_quantize(OperatorEmit& op) {
  require_plain(op);
  const CType type = op.type(2);
  require(is_byte(type) && op.type() == CType::real, "its integers do not have 8 bits");
  const std::string name = name_for("quantize", type);
  const CArgument y = op.output(0, op.shape(), type);
  op.call_instance("quantize", name,
                   cat("QUANTIZE(", name, ", ", c_name(type),
                       type == CType::int8 ? ", -128, 127)" : ", 0, 255)"),
                   {y, op.input(0), op.number(op.shape().count()), op.number(op.op.number(1, ""))});
}
EMIT_OPERATOR(QuantizeLinear, emit_quantize);

void emit_dequantize(OperatorEmit& op) {
  require_plain(op);
  const CType type = op.type();
  const std::string name = name_for("dequantize", type);
  const CArgument y = op.output(0, op.shape());
  op.call_instance("quantize", name, cat("DEQUANTIZE(", name, ", ", c_name(type), ")"),
                   {y, op.input(0), op.number(op.shape().count()), op.number(op.op.number(1, ""))});
}
EMIT_OPERATOR(DequantizeLinear, emit_dequantize);

// A product of integers, as a convolution: inputs x, its step, weights, their steps, bias.
struct IntegerConv {
  int64_t samples, groups, channels, outputs;  // channels and outputs of a group
  CWindow window;
  Shape result;

  int64_t taps() const { return channels * window.taps(); }
  int64_t rows() const { return groups * outputs; }
};

int64_t padded_taps(int64_t taps) {
  const int64_t whole = (taps + kVector - 1) / kVector * kVector;
  return 3 * whole <= 4 * taps ? whole : taps;
}

// Rows of weights in the order depth, row, channel, column, with zeros up to `padded` of them.
std::vector<int32_t> in_rows(const IntegerConv& conv, const std::vector<int64_t>& weights,
                             int64_t padded) {
  std::vector<int32_t> result;
  const int64_t length = conv.window.kernel[2], lines = conv.window.taps() / length;
  for (int64_t row = 0; row < conv.rows(); ++row) {
    const int64_t* const from = weights.data() + row * conv.taps();
    for (int64_t line = 0; line < lines; ++line)
      for (int64_t channel = 0; channel < conv.channels; ++channel)
        for (int64_t column = 0; column < length; ++column)
          result.push_back(static_cast<int32_t>(from[(channel * lines + line) * length + column]));
    result.resize(static_cast<size_t>((row + 1) * padded));
  }
  return result;
}

// The sums start at the bias and, for rows of `padded` taps, at what makes up for x + 128 in place of x.
std::vector<int32_t> first_sums(const OperatorEmit& op, const std::vector<int64_t>& weights,
                                int64_t rows, bool makes_unsigned) {
  std::vector<int32_t> sums;
  const bool whole = op.op.has(4) && op.op.constant(4, "the bias").is_int;
  if (!whole && !makes_unsigned) return sums;
  const int64_t taps = static_cast<int64_t>(weights.size()) / rows;
  for (int64_t row = 0; row < rows; ++row) {
    int64_t sum = whole ? op.op.constant(4, "the bias").ints[row] : 0;
    if (makes_unsigned)
      for (int64_t tap = 0; tap < taps; ++tap) sum -= 128 * weights[row * taps + tap];
    sums.push_back(static_cast<int32_t>(sum));
  }
  return sums;
}

// The field `.result`. Dividing keeps the order of numbers, so bounds of floats become bounds of integers.
std::string result_text(const OperatorEmit::Activation& activation,
                        const OperatorEmit::Rounding& rounding) {
  if (rounding.type == CType::real) return cat("{", activation.text(), ", 0, 0, 0}");
  const float least = rounding.type == CType::int8 ? -128 : 0, most = least + 255;
  float low = least, high = most;
  const bool clips = std::string(activation.kind) == "CLIP";
  if (clips) {
    low = std::clamp(activation.low / rounding.step, least, most);
    high = std::clamp(activation.high / rounding.step, least, most);
  }
  return cat("{", (clips ? OperatorEmit::Activation() : activation).text(), ", ",
             c_float(rounding.step), ", ", c_float(low), ", ", c_float(high), "}");
}

void emit_integer_conv(OperatorEmit& op, const IntegerConv& conv) {
  const std::vector<int64_t>& weights = op.op.constant(2, "the weights").ints;
  const int64_t rows = conv.rows(), taps = conv.taps();
  const bool depthwise = conv.groups > 1 && is_depthwise(conv.window, conv.channels),
             few_taps = !depthwise && taps <= kFewTaps && conv.window.positions() >= kSummed / 2,
             is_signed = op.type() == CType::int8;
  const int64_t padded = depthwise || few_taps ? taps : padded_taps(taps);
  op.count_products(conv.samples * rows * taps * conv.window.positions());

  std::vector<float> scales = op.op.constant(3, "the steps").floats;
  for (float& scale : scales) scale *= op.op.number(1, "the step");
  std::vector<int32_t> start = first_sums(op, weights, rows, is_signed && !depthwise && !few_taps);
  const bool float_bias = op.op.has(4) && !op.op.constant(4, "the bias").is_int;

  // An even number of positions, as two are computed together.
  const int64_t most = std::clamp(kPatchBytes / padded / 2 * 2, int64_t{2}, kMostPositions);
  const int64_t tile = std::min(most, conv.window.positions());
  CFields fields;
  fields.add("samples", conv.samples).add("groups", conv.groups).add("channels", conv.channels);
  fields.add("outputs", conv.outputs);
  fields.text("window", (few_taps ? conv.window.joined() : conv.window).text());
  fields.add("taps", padded);
  fields.add("tile", tile).add("flip", is_signed ? 128 : 0);
  fields.add("scales", int64_t{scales.size() > 1});
  const OperatorEmit::Activation activation = op.activation();
  const OperatorEmit::Rounding rounding = op.rounding();
  fields.text("result", result_text(activation, rounding));
  const CArgument y = op.output(0, conv.result, rounding.type);
  const CArgument none = op.text("NULL");
  std::vector<CArgument> arguments = {
      y,
      op.input(0),
      op.packed(2, "_rows", CType::int8,
                few_taps ? std::vector<int32_t>(weights.begin(), weights.end())
                         : in_rows(conv, weights, padded)),
      start.empty() ? none : op.packed(2, "_start", CType::whole, std::move(start)),
      float_bias ? op.input(4) : none,
      op.packed(2, "_scale", std::move(scales))};
  if (depthwise) {
    const DepthwiseRing ring(conv.window);
    CFields all;
    all.text("conv", fields.inner());
    // Rows are copied a window ahead, as vectors have to wait for values that were just written.
    const int64_t ahead = conv.window.stride[1];
    all.add("span", ring.span + ahead).add("step", ring.step);
    arguments.push_back(op.scratch(ring.size + ahead * conv.window.stride[2] * ring.step + taps));
    op.call("depthwise_int8", arguments, "depthwise_int8", all);
    return;
  }
  if (few_taps) {
    arguments.push_back(op.scratch((kSummed + 4) * taps));
    op.call("short_conv_int8", arguments, "conv_int8", fields);
    return;
  }
  arguments.push_back(op.intermediate("scratch", {tile * padded + kBehindPatches}, CType::uint8));
  op.call("conv_int8", arguments, "conv_int8", fields);
}

void emit_quantized_conv(OperatorEmit& op) {
  const Shape &x = op.shape(), &w = op.shape(2);
  const CWindow window = read_window(op, x, {w.dims().begin() + 2, w.dims().end()});
  const int64_t groups = op.op.int_of("group", 1);
  emit_integer_conv(op,
                    {x[0], groups, w[1], w[0] / groups, window, image_shape(x, w[0], window.out)});
}
EMIT_OPERATOR(QuantizedConv, emit_quantized_conv);

void emit_quantized_gemm(OperatorEmit& op) {
  const Shape &x = op.shape(), &w = op.shape(2);
  const std::vector<int64_t> one = {1, 1, 1}, zero = {0, 0, 0};
  emit_integer_conv(op, {x[0], 1, w[1], w[0], {one, one, one, one, zero, one}, {x[0], w[0]}});
}
EMIT_OPERATOR(QuantizedGemm, emit_quantized_gemm);

}  // namespace
}  // namespace crema
