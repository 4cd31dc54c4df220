// Batch normalization of channels-last tensors on the GPU, forward: two kernels (statistics,
// result). A thread keeps the parameters of one pack of channels and walks over rows.
#include <algorithm>

#include "base/ceil_div.h"
#include "device/launch.h"
#include "kernels/norm/batch_norm_kernels.h"
#include "kernels/norm/batch_norm_params.cuh"
#include "kernels/pointwise/gelu.h"
#include "kernels/reduce/column_reduce.cuh"
#include "tensor/on.h"

namespace crema {
namespace {

using namespace batch_norm;

template <typename T, int kPack>
__global__ void find_channel_statistics(ColumnGrid grid, const T* x, ChannelParams n, float* parts,
                                        unsigned* counters) {
  using P = Pack<T, kPack>;
  float pivot[kPack];  // near the mean: squares of differences from it keep all digits
  const int64_t column = first_column<kPack>(grid);
  if (column < grid.columns) {
    const P p = *reinterpret_cast<const P*>(x + column);
#pragma unroll
    for (int k = 0; k < kPack; ++k) pivot[k] = p.v[k];
  }
  const auto visit = [&]<int kRows>(const RowSet& rows, int64_t at, float(&sums)[2][kPack]) {
    P p[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      p[r] = *reinterpret_cast<const P*>(x + (rows.first + r * rows.step) * grid.columns + at);
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int k = 0; k < kPack; ++k) {
        const float h = static_cast<float>(p[r].v[k]) - pivot[k];
        sums[0][k] += h;
        sums[1][k] += h * h;
      }
    }
  };
  const auto finish = [&](int64_t c, const double* totals) {
    const Moments from_pivot = moments_of(totals[0], totals[1], n.each);
    const double mean = static_cast<float>(x[c]) + from_pivot.mean;
    if (n.own.values) return n.own.write(c, mean, from_pivot.variance * n.each, n.each);
    n.mean[c] = static_cast<float>(mean);
    n.inverse[c] = static_cast<float>(1 / sqrt(from_pivot.variance + n.stored.eps));
    n.stored.add(c, n.mean[c], from_pivot.variance, n.each);
  };
  sum_columns<kPack, 2>(grid, parts, counters, visit, finish);
}

__global__ void take_stored(int64_t channels, ChannelParams n) {
  const int64_t c = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (c < channels) n.stored.take(c, n.mean, n.inverse);
}

// Computes the statistics from the sums.
__global__ void take_sums(ChannelParams n, int64_t channels) {
  const int64_t c = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  float mean, inverse;
  if (c < channels) n.statistics(c, channels, true, mean, inverse);
}

__global__ void write_affine(ChannelParams n, int64_t channels, Half* affine) {
  const int64_t c = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (c >= channels) return;
  constexpr float kMax = 65504;
  float mean, inverse;
  n.statistics(c, channels, true, mean, inverse);
  const ChannelParams::Line line = n.line(c, mean, inverse);
  affine[c] = fminf(fmaxf(line.factor, -kMax), kMax);
  affine[channels + c] = fminf(fmaxf(line.constant, -kMax), kMax);
}

enum class Activation { none, relu, gelu };

// signs: one byte per pack, or null. Where sums are given, each thread derives the statistics of
// its channels from them, which saves a kernel.
template <typename T, int kPack, bool kAdded, Activation kActivation>
__global__ void apply_to_rows(ColumnGrid grid, const T* x, const T* added, T* y, uint8_t* signs,
                              float slope, ChannelParams n) {
  using P = Pack<T, kPack>;
  constexpr bool kRelu = kActivation == Activation::relu;
  const int64_t first = first_column<kPack>(grid);
  if (first >= grid.columns) return;
  const bool notes = blockIdx.x == 0 && threadIdx.x < grid.lanes;
  float mean[kPack], factor[kPack], bias[kPack];
#pragma unroll
  for (int k = 0; k < kPack; ++k) {
    const int64_t c = first + k;
    float inverse;
    n.statistics(c, grid.columns, notes, mean[k], inverse);
    factor[k] = n.factor(c, inverse);
    bias[k] = n.bias(c);
  }
  over_rows<kPack>(grid, [&]<int kRows>(const RowSet& rows, int64_t column) {
    P p[kRows];
    [[maybe_unused]] P more[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int64_t at = (rows.first + r * rows.step) * grid.columns + column;
      p[r] = *reinterpret_cast<const P*>(x + at);
      if constexpr (kAdded) more[r] = *reinterpret_cast<const P*>(added + at);
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      [[maybe_unused]] unsigned positive = 0;
#pragma unroll
      for (int k = 0; k < kPack; ++k) {
        float value = (static_cast<float>(p[r].v[k]) - mean[k]) * factor[k] + bias[k];
        if constexpr (kAdded) value += static_cast<float>(more[r].v[k]);
        if constexpr (kRelu) value = value > 0 ? value : slope * value;
        if constexpr (kActivation == Activation::gelu) value = Gelu<false>().value(value);
        p[r].v[k] = value;
        if constexpr (kAdded && kRelu) positive |= static_cast<float>(p[r].v[k]) > 0 ? 1u << k : 0u;
      }
      const int64_t at = (rows.first + r * rows.step) * grid.columns + column;
      *reinterpret_cast<P*>(y + at) = p[r];
      if constexpr (kAdded && kRelu) {
        if (signs) signs[at / kPack] = static_cast<uint8_t>(positive);
      }
    }
  });
}

// Writes the batch's statistics or the stored ones, unless sums are given.
template <typename T, int kPack>
void find(const Gpu& gpu, const BatchNormCase& c, const Tensor& x, const ChannelParams& n) {
  if (n.sums) return;
  if (c.batch_statistics) {
    const auto kernel = find_channel_statistics<T, kPack>;
    const ColumnGrid grid = grid_of_sums(kernel, c.view.each(), c.view.channels, kPack, 2);
    launch(gpu, kernel, {grid.blocks, 256}, grid, x.data<T>(), n, gpu.partial_sums, gpu.counters);
  } else {
    const auto blocks = static_cast<unsigned>(ceil_div(c.view.channels, 256));
    launch(gpu, take_stored, {blocks, 256}, c.view.channels, n);
  }
}

// signs: may be empty.
template <typename T, int kPack>
void write_result(const Gpu& gpu, const ColumnGrid& grid, const BatchNormCase& c, const Tensor& x,
                  const Tensor& added, const Tensor& y, const Tensor& signs,
                  const ChannelParams& n) {
  using enum Activation;
  const auto kernel =
      added    ? c.relu ? apply_to_rows<T, kPack, true, relu> : apply_to_rows<T, kPack, true, none>
         : c.relu ? apply_to_rows<T, kPack, false, relu>
      : c.gelu ? apply_to_rows<T, kPack, false, gelu>
               : apply_to_rows<T, kPack, false, none>;
  launch(gpu, kernel, {grid.blocks, 256}, grid, x.data<T>(), added.data<T>(), y.data<T>(),
         signs.data<uint8_t>(), c.slope, n);
}

constexpr Refusal kNotInRows = "for channels-last or one channel, and not in float64";

Refusal batch_norm_forward_gpu(Context& context, const BatchNormCase& c,
                               const BatchNormParameters& parameters, const Tensor& x,
                               const Tensor& added, const Tensor& sums, const Tensor& y,
                               const BatchNormSaved& saved, const Tensor& workspace) {
  if (!batch_norm_in_rows(c, x.dtype())) return kNotInRows;
  const Gpu& gpu = context.gpu();
  ChannelParams n = channel_params(c, parameters, saved, workspace.data<float>());
  if (c.batch_statistics) n.sums = sums.data<float>();
  const bool over_ranks = c.over_ranks && c.batch_statistics;
  require(!over_ranks || !sums, "batch normalization over ranks was given the sums of one");
  ChannelParams first = n;
  if (over_ranks) first.own = own_statistics<float>(context, c.view, workspace);
  with_grid(
      c.view, x,
      [&]<typename T, int kPack>(ColumnGrid wide) {
        require_packs<T, kPack>(saved.signs);
        find<T, kPack>(gpu, c, x, first);
        if (over_ranks) merge_statistics(context, c, parameters, saved, workspace);
        // Starts at the end of x that was touched last and is still cached: the statistics pass
        // walks backwards, the producer of x forwards.
        wide.from_end = n.sums || !c.batch_statistics;
        write_result<T, kPack>(gpu, wide, c, x, added, y, saved.signs, n);
      },
      added, y);
  return nullptr;
}

Refusal batch_norm_recompute_gpu(Context& context, const BatchNormCase& c,
                                 const BatchNormParameters& parameters, const Tensor& x,
                                 const Tensor& added, const Tensor& y, const BatchNormSaved& saved,
                                 const Tensor& workspace) {
  if (!batch_norm_in_rows(c, x.dtype())) return kNotInRows;
  const ChannelParams n = channel_params(c, parameters, saved, workspace.data<float>());
  with_grid(
      c.view, x,
      [&]<typename T, int kPack>(const ColumnGrid& wide) {
        write_result<T, kPack>(context.gpu(), wide, c, x, added, y, {}, n);
      },
      added, y);
  return nullptr;
}

REGISTER_KERNEL(batch_norm_forward_kernels, "channels_last", RunsOn::gpu, 10,
                batch_norm_forward_gpu);
REGISTER_KERNEL(batch_norm_recompute_kernels, "channels_last", RunsOn::gpu, 10,
                batch_norm_recompute_gpu);

}  // namespace

void batch_norm_statistics_gpu(Context& context, const BatchNormCase& c,
                               const BatchNormParameters& parameters, const Tensor& x,
                               const Tensor& sums, const BatchNormSaved& saved,
                               const Tensor& workspace) {
  ChannelParams n = channel_params(c, parameters, saved, workspace.data<float>());
  if (c.batch_statistics && sums) {
    n.sums = sums.data<float>();
    const auto blocks = static_cast<unsigned>(ceil_div(c.view.channels, 128));
    return launch(context.gpu(), take_sums, {blocks, 128}, n, c.view.channels);
  }
  with_grid(c.view, x, [&]<typename T, int kPack>(const ColumnGrid&) {
    find<T, kPack>(context.gpu(), c, x, n);
  });
}

namespace {

Refusal batch_norm_affine_gpu(Context& context, const BatchNormCase& c,
                              const BatchNormParameters& parameters, const Tensor& x,
                              const Tensor& sums, const Tensor& affine, const BatchNormSaved& saved,
                              const Tensor& workspace) {
  if (!batch_norm_in_rows(c, x.dtype())) return kNotInRows;
  ChannelParams n = channel_params(c, parameters, saved, workspace.data<float>());
  if (c.batch_statistics) n.sums = sums.data<float>();
  if (!n.sums) batch_norm_statistics_gpu(context, c, parameters, x, Tensor(), saved, workspace);
  const auto blocks = static_cast<unsigned>(ceil_div(c.view.channels, 128));
  launch(context.gpu(), write_affine, {blocks, 128}, n, c.view.channels, affine.data<Half>());
  return nullptr;
}

REGISTER_KERNEL(batch_norm_affine_kernels, "channels_last", RunsOn::gpu, 10, batch_norm_affine_gpu);

}  // namespace
}  // namespace crema
