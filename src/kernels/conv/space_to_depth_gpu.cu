#include "base/ceil_div.h"
#include "device/parallel.h"
#include "kernels/conv/space_to_depth.h"

namespace crema {
namespace {

constexpr int kThreads = 128;
constexpr int kQuad = 4, kVector = 8;  // elements per load and per store of a thread
// cuDNN's TMA kernels reach half of the arithmetic limit from this many channels on, and less if
// the channels are not a multiple of it.
constexpr int kDeep = 32;

struct alignas(8) Quad {
  uint16_t v[kQuad];
};
struct alignas(16) Vector {
  Quad v[kVector / kQuad];
};

int64_t channels_in_memory(const ConvCase& c) { return c.x_channels > 0 ? c.x_channels : c.x[1]; }

// One row of blocks. A thread computes the same eight channels of several blocks.
__global__ void __launch_bounds__(kThreads)
    image_to_blocks(SpaceToDepthCase c, const Quad* image, Vector* blocks) {
  const int quads = c.channels / kQuad;
  const int i = static_cast<int>(blockIdx.x) % c.blocks[0];
  const int64_t n = static_cast<int64_t>(blockIdx.x) / c.blocks[0];
  const int vectors = c.deep / kVector, together = static_cast<int>(blockDim.x) / vectors;
  const int vector = static_cast<int>(threadIdx.x) % vectors;
  const Quad* from[2];  // addresses of the two halves in the row's first block
  int column[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int k = vector * 2 + half, pixel = k / quads, x = pixel % c.span - c.pad[1];
    const int y = i * c.stride[0] - c.pad[0] + pixel / c.span;
    const bool inside = k * kQuad < c.block_channels && y >= 0 && y < c.height;
    from[half] = image + ((n * c.height + y) * c.width + x) * quads + k % quads;
    column[half] = inside ? x : -(1 << 30);
  }
  Vector* const to = blocks + static_cast<int64_t>(blockIdx.x) * c.blocks[1] * vectors + vector;
#pragma unroll 4
  for (int j = static_cast<int>(threadIdx.x) / vectors; j < c.blocks[1]; j += together) {
    const int at = j * c.stride[1];
    Vector made;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const bool inside = static_cast<unsigned>(column[half] + at) < static_cast<unsigned>(c.width);
      made.v[half] = inside ? from[half][at * quads] : Quad{};
    }
    to[static_cast<int64_t>(j) * vectors] = made;
  }
}

// Computes element (output, tap, k) of the block image's weights.
struct WeightsToDepth {
  SpaceToDepthCase c;
  const uint16_t* w;
  uint16_t* blocks;
  CREMA_HD void operator()(int64_t i) const {
    const int k = static_cast<int>(i % c.deep), tap = static_cast<int>(i / c.deep);
    const int x = tap % c.taps[1], y = tap / c.taps[1] % c.taps[0];
    const int output = tap / c.taps[1] / c.taps[0], pixel = k / c.channels;
    const int row = y * c.stride[0] + pixel / c.span, column = x * c.span + pixel % c.span;
    const bool there = k < c.block_channels && row < c.kernel[0] && column < c.kernel[1];
    const int at = (output * c.kernel[0] + row) * c.kernel[1] + column;
    blocks[i] = there ? w[at * c.channels + k % c.channels] : uint16_t{0};
  }
};

// Computes element (output, row, column, channel) of dw.
struct DepthToWeightsGradient {
  SpaceToDepthCase c;
  const float* blocks;
  float* dw;
  bool accumulate;
  CREMA_HD void operator()(int64_t i) const {
    const int channel = static_cast<int>(i % c.channels), tap = static_cast<int>(i / c.channels);
    const int column = tap % c.kernel[1], row = tap / c.kernel[1] % c.kernel[0];
    const int output = tap / c.kernel[1] / c.kernel[0];
    const int at = (output * c.taps[0] + row / c.stride[0]) * c.taps[1] + column / c.span;
    const int pixel = row % c.stride[0] * c.span + column % c.span;
    const float value = blocks[at * c.deep + pixel * c.channels + channel];
    dw[i] = accumulate ? dw[i] + value : value;
  }
};

}  // namespace

bool SpaceToDepthCase::supports(const ConvCase& c, std::string& reason) {
  const bool images = c.order == Order::channels_last && c.x.axes() == 4;
  const int64_t channels = channels_in_memory(c);
  if (!is_half(c.dtype)) {
    reason = "for 16-bit numbers only";
  } else if (!images) {
    reason = "for channels-last images of two axes only";
  } else if (c.backward_data) {
    reason = "no gradient of the data";
  } else if (c.groups != 1) {
    reason = "groups";
  } else if (c.dilation != std::vector<int64_t>{1, 1}) {
    reason = "dilation";
  } else if (c.stride[0] * c.stride[1] == 1) {
    reason = "stride 1";
  } else if (channels != 4 && channels != 8) {
    reason = cat(channels, " channels in memory, not 4 or 8");
  } else if (SpaceToDepthCase(c).deep > kThreads * kVector) {
    reason = "blocks of too many pixels";
  } else if (c.x.count() == 0 || c.y.count() == 0) {
    reason = "nothing to compute";
  } else {
    return true;
  }
  return false;
}

SpaceToDepthCase::SpaceToDepthCase(const ConvCase& c) {
  const auto to_int = [](int64_t value) { return static_cast<int>(value); };
  images = to_int(c.x[0]), height = to_int(c.x[2]), width = to_int(c.x[3]);
  channels = to_int(channels_in_memory(c));
  outputs = to_int(c.w[0]);
  for (int i = 0; i < 2; ++i) {
    kernel[i] = to_int(c.w[i + 2]), stride[i] = to_int(c.stride[i]), pad[i] = to_int(c.pad[i]);
  }
  overlap = 1;
  while (stride[0] * stride[1] * overlap * channels < kDeep && stride[1] * overlap < kernel[1])
    overlap *= 2;
  span = stride[1] * overlap;
  taps[0] = ceil_div(kernel[0], stride[0]), taps[1] = ceil_div(kernel[1], span);
  blocks[0] = to_int(c.y[2]) + taps[0] - 1;
  blocks[1] = to_int(c.y[3]) + (taps[1] - 1) * overlap;
  block_channels = stride[0] * span * channels;
  deep = ceil_div(block_channels, kDeep) * kDeep;
}

ConvCase SpaceToDepthCase::inner(const ConvCase& c) const {
  ConvCase in = c;
  in.x = {c.x[0], block_channels, blocks[0], blocks[1]};
  in.w = {c.w[0], block_channels, taps[0], taps[1]};
  in.stride = {1, 1};
  in.dilation = {1, overlap};
  in.pad = {0, 0};
  in.x_channels = deep > block_channels ? deep : 0;
  in.weights_format.reset();
  return in;
}

void space_to_depth(Context& context, const SpaceToDepthCase& c, const Tensor& x,
                    const Tensor& blocks) {
  const int vectors = c.deep / kVector, threads = kThreads / vectors * vectors;
  const LaunchShape shape{static_cast<unsigned>(c.images * c.blocks[0]),
                          static_cast<unsigned>(threads)};
  launch(context.gpu(), image_to_blocks, shape, c, x.data<Quad>(), blocks.data<Vector>());
}

void weights_to_depth(Context& context, const SpaceToDepthCase& c, const Tensor& w,
                      const Tensor& blocks) {
  parallel_for(context, blocks.elements(),
               WeightsToDepth{c, w.data<uint16_t>(), blocks.data<uint16_t>()});
}

void weights_gradient_from_depth(Context& context, const SpaceToDepthCase& c, const Tensor& blocks,
                                 const Tensor& dw, bool accumulate) {
  parallel_for(context, dw.elements(),
               DepthToWeightsGradient{c, blocks.data<float>(), dw.data<float>(), accumulate});
}

}  // namespace crema
