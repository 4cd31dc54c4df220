// Per-channel sums on the GPU: blocks write partial sums to the scratch memory; a second, small
// kernel adds them in order.
#include "kernels/pointwise/channel_sums.h"

#include <algorithm>

#include "base/ceil_div.h"
#include "device/parallel.h"
#include "kernels/pointwise/channel_terms.h"
#include "tensor/on.h"
#ifdef __CUDACC__
#include "kernels/core/warp.cuh"
#endif

namespace crema {
namespace {

// The number of pieces of a channel's elements: enough blocks for a large card.
int64_t pieces_of(const ChannelView& view) {
  const int64_t blocks =
      view.inner == 1 ? view.groups * ceil_div(view.channels, 32) : view.values();
  if (blocks == 0) return 0;
  return std::clamp<int64_t>(std::min(1024 / blocks, view.each() / 256), 1, 256);
}

// partial[piece][2][values] -> sums[2][values]
struct AddPieces {
  const double* partial;
  int64_t count, pieces;
  double* sums;
  CREMA_HD void operator()(int64_t i) const {
    double sum = 0;
    for (int64_t piece = 0; piece < pieces; ++piece) sum += partial[piece * count + i];
    sums[i] = sum;
  }
};

#ifdef __CUDACC__

// Row-major: a block of 256 threads for one channel and one piece of its elements.
template <typename T, typename Term>
__global__ void sum_planes(ChannelView view, Term term, double* partial) {
  const int64_t value = blockIdx.x, piece = blockIdx.y, pieces = gridDim.y;
  const int64_t group = value / view.channels, channel = value % view.channels;
  const int64_t begin = view.each() * piece / pieces, end = view.each() * (piece + 1) / pieces;
  T first = 0, second = 0;
  for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
    const int64_t plane = (group * view.outer + i / view.inner) * view.channels + channel;
    T g, h;
    term(plane * view.inner + i % view.inner, value, g, h);
    first += g;
    second += g * h;
  }
  const double a = block_all(static_cast<double>(first), Plus{}),
               b = block_all(static_cast<double>(second), Plus{});
  if (threadIdx.x == 0) {
    partial[piece * 2 * view.values() + value] = a;
    partial[(piece * 2 + 1) * view.values() + value] = b;
  }
}

// Channels-last: a block covers 32 channels x 8 rows at a time, so that loads are coalesced.
template <typename T, typename Term>
__global__ void sum_rows(ChannelView view, Term term, double* partial) {
  __shared__ double shared[2][8][33];
  const int64_t tiles = (view.channels + 31) / 32;
  const int64_t group = blockIdx.x / tiles, channel = blockIdx.x % tiles * 32 + threadIdx.x;
  const int64_t piece = blockIdx.y, pieces = gridDim.y;
  const int64_t begin = view.outer * piece / pieces, end = view.outer * (piece + 1) / pieces;
  T first = 0, second = 0;
  if (channel < view.channels) {
    for (int64_t row = begin + threadIdx.y; row < end; row += 8) {
      T g, h;
      term((group * view.outer + row) * view.channels + channel, group * view.channels + channel, g,
           h);
      first += g;
      second += g * h;
    }
  }
  shared[0][threadIdx.y][threadIdx.x] = first;
  shared[1][threadIdx.y][threadIdx.x] = second;
  __syncthreads();
  if (threadIdx.y < 2 && channel < view.channels) {
    double sum = 0;
    for (int row = 0; row < 8; ++row) sum += shared[threadIdx.y][row][threadIdx.x];
    partial[(piece * 2 + threadIdx.y) * view.values() + group * view.channels + channel] = sum;
  }
}

#endif

}  // namespace

size_t channel_sums_scratch(Context& context, const ChannelView& view) {
  return context.device() == Device::cpu ? 0 : pieces_of(view) * 2 * view.values() * sizeof(double);
}

void channel_sums_gpu(Context& context, const ChannelView& view, const ChannelTerm& of,
                      const Tensor& masked, double* sums, void* scratch) {
  const int64_t pieces = pieces_of(view);
  if (pieces == 0) return;
  double* partial = static_cast<double*>(scratch);
#ifdef __CUDACC__
  on(of.dy ? of.dy : of.x, [&]<typename T>() {
    with_term<T>(of, masked, [&]<typename Term>(const Term& term) {
      const unsigned splits = static_cast<unsigned>(pieces);
      if (view.inner == 1) {
        const unsigned tiles = static_cast<unsigned>(view.groups * ceil_div(view.channels, 32));
        launch(context.gpu(), sum_rows<T, Term>, {dim3(tiles, splits), dim3(32, 8)}, view, term,
               partial);
      } else {
        const unsigned values = static_cast<unsigned>(view.values());
        launch(context.gpu(), sum_planes<T, Term>, {dim3(values, splits), 256}, view, term,
               partial);
      }
    });
  });
#else
  (void)of;
  (void)masked;
#endif
  parallel_for(context, 2 * view.values(), AddPieces{partial, 2 * view.values(), pieces, sums});
}

}  // namespace crema
