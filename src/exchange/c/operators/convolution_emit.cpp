// Conv and ConvTranspose.
#include "exchange/c/operators/convolution_emit.h"

#include <algorithm>

namespace crema {
namespace {

constexpr int64_t kTile = 16;  // TILE of conv.c
// The memory for patches, in floats: enough taps that the sums are seldom read again, but no more than
// a level-1 cache holds, or a small part of the image.
constexpr int64_t kLeastPatches = 64 * kTile, kMostPatches = 8192;  // MOST_PATCHES of conv.c

std::vector<int64_t> kernel_of(const OperatorEmit& op) {
  const std::vector<int64_t>& dims = op.shape(1).dims();
  return {dims.begin() + 2, dims.end()};
}

// Weights in blocks of four output channels: block, tap, channel.
std::vector<float> in_blocks(const std::vector<float>& weights, const CConvolution& shape) {
  const int64_t outputs = shape.outputs, taps = shape.taps();
  std::vector<float> result;
  result.reserve(weights.size());
  for (int64_t group = 0; group < shape.groups; ++group) {
    const float* const from = weights.data() + group * outputs * taps;
    for (int64_t first = 0; first < outputs; first += 4)
      for (int64_t tap = 0; tap < taps; ++tap)
        for (int64_t o = first; o < std::min(first + 4, outputs); ++o)
          result.push_back(from[o * taps + tap]);
  }
  return result;
}

void emit_depthwise(OperatorEmit& op, const CWindow& window, int64_t outputs) {
  const Shape& x = op.shape();
  const DepthwiseRing ring(window);
  CFields fields;
  fields.add("samples", x[0]).add("channels", x[1]).add("outputs", outputs);
  fields.text("window", window.text()).add("span", ring.span).add("step", ring.step);
  fields.text("activation", op.activation().text());
  const CArgument y = op.output(0, image_shape(x, x[1] * outputs, window.out));
  op.call("depthwise", {y, op.input(0), op.input(1), op.input(2), op.scratch(ring.size)},
          "depthwise", fields);
}

void emit_conv(OperatorEmit& op) {
  const Shape &x = op.shape(), &w = op.shape(1);
  const bool learns = op.is_trained(1);
  require((learns || op.op.is_constant(1)) &&
              (!op.op.has(2) || op.op.is_constant(2) || op.is_trained(2)),
          "its weights are computed, and C functions have them in another order");
  const int64_t groups = op.op.int_of("group", 1);
  const CConvolution shape{read_window(op, x, kernel_of(op)), x[0], groups, w[1], w[0] / groups};
  const CWindow& window = shape.window;
  op.count_products(x[0] * w[0] * shape.taps() * window.positions());
  if (groups > 1 && is_depthwise(window, shape.channels))
    return emit_depthwise(op, window, shape.outputs);
  const std::string activation = op.activation().text();
  const CArgument y = op.output(0, image_shape(x, w[0], window.out));
  const CArgument weights =
      learns ? pack_blocks(op, op.input(1), shape)
             : op.packed(1, "_blocks", in_blocks(op.op.constant(1, "the weights").floats, shape));
  call_conv(op, shape, y, op.input(0), weights, op.input(2), activation);
}
EMIT_OPERATOR(Conv, emit_conv);

void emit_conv_transpose(OperatorEmit& op) {
  const Shape &x = op.shape(), &w = op.shape(1);
  const CConvolution shape = transposed_convolution(op);
  op.count_products(x.count() * w[1] * shape.window.taps());
  CFields fields;
  fields.add("samples", x[0]).add("groups", shape.groups).add("channels", shape.outputs);
  fields.add("outputs", w[1]).text("window", shape.window.text());
  fields.text("activation", op.activation().text());
  const CArgument y = op.output(0, image_shape(x, w[1] * shape.groups, shape.window.in));
  op.call("conv_transpose", {y, op.input(0), op.input(1), op.input(2)}, "conv_transpose", fields);
}
EMIT_OPERATOR(ConvTranspose, emit_conv_transpose);

}  // namespace

CConvolution transposed_convolution(const OperatorEmit& op) {
  const Shape &x = op.shape(), &w = op.shape(1);
  CWindow window = read_window(op, x, kernel_of(op));
  const int spatial = x.axes() - 2;
  std::vector<int64_t> pads = op.op.ints_of("pads"), more = op.op.ints_of("output_padding");
  pads.resize(2 * spatial);
  more.resize(spatial);
  window.out = window.in;
  for (int i = 0; i < spatial; ++i) {
    const int axis = i + 3 - spatial;
    window.in[axis] = (window.out[axis] - 1) * window.stride[axis] +
                      (window.kernel[axis] - 1) * window.dilation[axis] + 1 - pads[i] -
                      pads[spatial + i] + more[i];
  }
  const int64_t groups = op.op.int_of("group", 1);
  return {window, x[0], groups, w[1], x[1] / groups};
}

CArgument pack_blocks(OperatorEmit& op, const CArgument& weights, const CConvolution& shape) {
  CArgument blocks = op.intermediate("blocks", {shape.groups * shape.outputs * shape.taps()});
  blocks.written = true;
  op.call("pack_blocks", {blocks, weights, op.number(shape.groups), op.number(shape.outputs),
                          op.number(shape.taps())});
  blocks.written = false;
  return blocks;
}

void call_conv(OperatorEmit& op, const CConvolution& shape, const CArgument& y, const CArgument& x,
               const CArgument& weights, const CArgument& bias, const std::string& activation) {
  const CWindow& window = shape.window;
  const int64_t taps = shape.taps();
  const bool direct = window.is_point();
  const int64_t plane = window.in[0] * window.in[1] * window.in[2];
  const int64_t image =
      shape.groups * (shape.channels * plane + shape.outputs * window.positions());
  const int64_t room = std::clamp(image / 8, kLeastPatches, kMostPatches);
  // A whole image without a rest needs no patches, but the sums would be read from far away.
  int64_t chunk = std::min(taps, room / kTile);
  chunk = (taps + (taps + chunk - 1) / chunk - 1) / ((taps + chunk - 1) / chunk);
  CFields fields;
  fields.add("samples", shape.samples).add("groups", shape.groups);
  fields.add("channels", shape.channels).add("outputs", shape.outputs);
  fields.text("window", window.text()).add("chunk", chunk);
  fields.add("direct", int64_t{direct}).text("activation", activation);
  const bool needs_patches = !direct || window.positions() % kTile != 0;
  op.call("conv",
          {y, x, weights, bias, needs_patches ? op.scratch(chunk * kTile) : op.text("NULL")},
          "conv", fields);
}

}  // namespace crema
