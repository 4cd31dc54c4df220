#include "device/launch.h"
#include "device/memory.h"
#include "kernels/pointwise/bias.h"
#include "kernels/reduce/column_reduce.cuh"

namespace crema {
namespace {

template <typename T, int kPack, bool kRelu>
__global__ void relu_and_sum(ColumnGrid grid, const T* y, ReluSlopes slopes, T* dy, float* db,
                             bool accumulate, float* parts, unsigned* counters) {
  using P = Pack<T, kPack>;
  const auto visit = [&]<int kRows>(const RowSet& rows, int64_t column, float(&sums)[1][kPack]) {
    P g[kRows], sign[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int64_t at = (rows.first + r * rows.step) * grid.columns + column;
      g[r] = *reinterpret_cast<const P*>(dy + at);
      if constexpr (kRelu) sign[r] = *reinterpret_cast<const P*>(y + at);
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int k = 0; k < kPack; ++k) {
        const float value = g[r].v[k];
        const float out = !kRelu                                 ? value
                          : static_cast<float>(sign[r].v[k]) > 0 ? slopes.right * value
                                                                 : slopes.left * value;
        if constexpr (kRelu) g[r].v[k] = out;
        sums[0][k] += out;
      }
      if constexpr (kRelu)
        *reinterpret_cast<P*>(dy + (rows.first + r * rows.step) * grid.columns + column) = g[r];
    }
  };
  const auto finish = [&](int64_t column, const double* totals) {
    const auto sum = static_cast<float>(totals[0]);
    db[column] = accumulate ? db[column] + sum : sum;
  };
  sum_columns<kPack, 1>(grid, parts, counters, visit, finish);
}

}  // namespace

template <typename T>
void relu_bias_gradient_gpu(Context& context, int64_t outer, int64_t channels, const T* y,
                            ReluSlopes slopes, T* dy, float* db, bool accumulate) {
  if (outer * channels == 0) {
    if (!accumulate) zero_bytes(context, db, Device::gpu, channels * sizeof(float));
    return;
  }
  const Gpu& gpu = context.gpu();
  with_column_pack<T>(
      channels,
      [&]<int kPack>() {
        const auto kernel = y ? relu_and_sum<T, kPack, true> : relu_and_sum<T, kPack, false>;
        const ColumnGrid grid = grid_of_sums(kernel, outer, channels, kPack, 1);
        launch(gpu, kernel, {grid.blocks, 256}, grid, y, slopes, dy, db, accumulate,
               gpu.partial_sums, gpu.counters);
      },
      y, dy);
}

template void relu_bias_gradient_gpu<float>(Context&, int64_t, int64_t, const float*, ReluSlopes,
                                            float*, float*, bool);
template void relu_bias_gradient_gpu<Half>(Context&, int64_t, int64_t, const Half*, ReluSlopes,
                                           Half*, float*, bool);
template void relu_bias_gradient_gpu<BFloat16>(Context&, int64_t, int64_t, const BFloat16*,
                                               ReluSlopes, BFloat16*, float*, bool);

}  // namespace crema
