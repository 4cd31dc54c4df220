// The sum of two batch normalizations of channels-last tensors on the GPU: forward is one kernel
// after their statistics, backward two, for the sums and for both gradients. A thread keeps the
// parameters of one pack of channels of both and walks over rows. Memory-bound: each kernel reads
// or writes each tensor once.
#include "device/launch.h"
#include "kernels/norm/batch_norm_kernels.h"
#include "kernels/norm/batch_norm_pair.h"
#include "kernels/norm/batch_norm_params.cuh"
#include "kernels/reduce/column_reduce.cuh"
#include "tensor/on.h"

namespace crema {
namespace {

using namespace batch_norm;

// signs: one byte per pack, or null.
template <typename T, int kPack>
__global__ void __launch_bounds__(256, 2)
    apply_pair(ColumnGrid grid, const T* x, const T* z, T* y, uint8_t* signs, float slope,
               ChannelParams a, ChannelParams b) {
  using P = Pack<T, kPack>;
  const int64_t first = first_column<kPack>(grid);
  if (first >= grid.columns) return;
  const bool notes = blockIdx.x == 0 && threadIdx.x < grid.lanes;
  float factor[2][kPack], constant[kPack];  // y = relu(x factor[0] + z factor[1] + constant)
#pragma unroll
  for (int k = 0; k < kPack; ++k) {
    const int64_t c = first + k;
    float mean, inverse;
    a.statistics(c, grid.columns, notes, mean, inverse);
    const ChannelParams::Line of_x = a.line(c, mean, inverse);
    b.statistics(c, grid.columns, notes, mean, inverse);
    const ChannelParams::Line of_z = b.line(c, mean, inverse);
    factor[0][k] = of_x.factor, factor[1][k] = of_z.factor;
    constant[k] = of_x.constant + of_z.constant;
  }
  over_rows<kPack>(grid, [&]<int kRows>(const RowSet& rows, int64_t column) {
    P p[kRows], q[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int64_t at = (rows.first + r * rows.step) * grid.columns + column;
      p[r] = *reinterpret_cast<const P*>(x + at);
      q[r] = *reinterpret_cast<const P*>(z + at);
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      unsigned positive = 0;
#pragma unroll
      for (int k = 0; k < kPack; ++k) {
        float value = static_cast<float>(p[r].v[k]) * factor[0][k] +
                      (static_cast<float>(q[r].v[k]) * factor[1][k] + constant[k]);
        value = value > 0 ? value : slope * value;
        p[r].v[k] = value;
        positive |= static_cast<float>(p[r].v[k]) > 0 ? 1u << k : 0u;
      }
      const int64_t at = (rows.first + r * rows.step) * grid.columns + column;
      *reinterpret_cast<P*>(y + at) = p[r];
      if (signs) signs[at / kPack] = static_cast<uint8_t>(positive);
    }
  });
}

// The gradient before the ReLU, dy + more_dy (null: dy alone) masked, and the two x.
template <typename T>
struct PairTerm {
  const T *dy, *more_dy, *x, *z;
  const uint8_t* signs;
  float slope;
};

template <typename T, int kPack>
struct PairLoaded {
  Pack<T, kPack> dy, more, x, z;
  unsigned signs;
};

// kept: where to store the gradient before the ReLU; may be dy's memory.
template <typename T, int kPack, bool kTwoParts>
__global__ void __launch_bounds__(256, 2)
    sum_pair(ColumnGrid grid, PairTerm<T> term, T* kept, ChannelParams a, ChannelParams b,
             bool through_statistics, float* parts, unsigned* counters) {
  using P = Pack<T, kPack>;
  float mean[2][kPack];
  const int64_t column = first_column<kPack>(grid);
  if (column < grid.columns) {
#pragma unroll
    for (int k = 0; k < kPack; ++k) {
      mean[0][k] = a.mean[column + k];
      mean[1][k] = b.mean[column + k];
    }
  }
  const auto visit = [&]<int kRows>(const RowSet& rows, int64_t at, float(&sums)[3][kPack]) {
    PairLoaded<T, kPack> loaded[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int64_t position = (rows.first + r * rows.step) * grid.columns + at;
      loaded[r].dy = *reinterpret_cast<const P*>(term.dy + position);
      if constexpr (kTwoParts)
        loaded[r].more = *reinterpret_cast<const P*>(term.more_dy + position);
      loaded[r].x = *reinterpret_cast<const P*>(term.x + position);
      loaded[r].z = *reinterpret_cast<const P*>(term.z + position);
      loaded[r].signs = term.signs[position / kPack];
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      P out;
#pragma unroll
      for (int k = 0; k < kPack; ++k) {
        float g = loaded[r].dy.v[k];
        if constexpr (kTwoParts) g += static_cast<float>(loaded[r].more.v[k]);
        if (!(loaded[r].signs >> k & 1u)) g *= term.slope;
        sums[0][k] += g;
        sums[1][k] += g * (static_cast<float>(loaded[r].x.v[k]) - mean[0][k]);
        sums[2][k] += g * (static_cast<float>(loaded[r].z.v[k]) - mean[1][k]);
        out.v[k] = g;
      }
      *reinterpret_cast<P*>(kept + (rows.first + r * rows.step) * grid.columns + at) = out;
    }
  };
  const auto finish = [&](int64_t c, const double* totals) {
    a.finish_gradients(c, totals[0], totals[1], false, through_statistics);
    b.finish_gradients(c, totals[0], totals[2], false, through_statistics);
  };
  sum_columns<kPack, 3>(grid, parts, counters, visit, finish);
}

// term.dy: the gradient that sum_pair stored. dx or dz may share its memory, or be null.
template <typename T, int kPack>
__global__ void __launch_bounds__(256, 2)
    apply_pair_gradient(ColumnGrid grid, PairTerm<T> term, T* dx, T* dz, ChannelParams a,
                        ChannelParams b) {
  using P = Pack<T, kPack>;
  const int64_t first = first_column<kPack>(grid);
  if (first >= grid.columns) return;
  ChannelParams::GradientLine of_x[kPack], of_z[kPack];
#pragma unroll
  for (int k = 0; k < kPack; ++k) {
    of_x[k] = a.gradient_line(first + k);
    of_z[k] = b.gradient_line(first + k);
  }
  over_rows<kPack>(grid, [&]<int kRows>(const RowSet& rows, int64_t column) {
    P g[kRows], x[kRows], z[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int64_t at = (rows.first + r * rows.step) * grid.columns + column;
      g[r] = *reinterpret_cast<const P*>(term.dy + at);
      x[r] = *reinterpret_cast<const P*>(term.x + at);
      z[r] = *reinterpret_cast<const P*>(term.z + at);
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int64_t at = (rows.first + r * rows.step) * grid.columns + column;
#pragma unroll
      for (int k = 0; k < kPack; ++k) {
        const float given = g[r].v[k];
        x[r].v[k] = of_x[k].of(given, static_cast<float>(x[r].v[k]));
        z[r].v[k] = of_z[k].of(given, static_cast<float>(z[r].v[k]));
      }
      if (dx) *reinterpret_cast<P*>(dx + at) = x[r];
      if (dz) *reinterpret_cast<P*>(dz + at) = z[r];
    }
  });
}

// Calls body<T>() for the dtypes that have packs.
template <typename Body>
void on_packs(const Tensor& tensor, const Body& body) {
  on_real(tensor, [&]<typename T>() {
    if constexpr (!std::is_same_v<T, double>) body.template operator()<T>();
  });
}

template <typename T, bool kTwoParts>
void start_pair_sums(const Gpu& gpu, const BatchNormCase& c, const PairTerm<T>& term, T* kept,
                     const ChannelParams& a, const ChannelParams& b) {
  const auto kernel = sum_pair<T, kPackCount<T>, kTwoParts>;
  const ColumnGrid grid = grid_of_sums(kernel, c.view.each(), c.view.channels, kPackCount<T>, 3);
  launch(gpu, kernel, {grid.blocks, 256}, grid, term, kept, a, b, c.batch_statistics,
         gpu.partial_sums, gpu.counters);
}

ChannelParams params_of(const BatchNormCase& c, const BatchNormSide& side, int number,
                        const Tensor& workspace) {
  return channel_params(c, side.parameters, side.saved,
                        workspace.data<float>() + 2 * number * c.view.channels);
}

void write_pair(Context& context, const BatchNormCase& c, const Tensor& x, const Tensor& z,
                const Tensor& y, const Tensor& signs, const ChannelParams& a,
                const ChannelParams& b) {
  on_packs(y, [&]<typename T>() {
    ColumnGrid wide(c.view.each(), c.view.channels, kPackCount<T>);
    wide.from_end = a.sums && b.sums;
    launch(context.gpu(), apply_pair<T, kPackCount<T>>, {wide.blocks, 256}, wide, x.data<T>(),
           z.data<T>(), y.data<T>(), signs.data<uint8_t>(), c.slope, a, b);
  });
}

Refusal pair_forward_gpu(Context& context, const BatchNormCase& c, const BatchNormSide& a,
                         const BatchNormSide& b, const Tensor& y, const Tensor& workspace) {
  for (const BatchNormSide* side : {&a, &b}) {
    if (!c.batch_statistics || !side->sums)
      batch_norm_statistics_gpu(context, c, side->parameters, side->x, Tensor(), side->saved,
                                workspace);
  }
  ChannelParams n = params_of(c, a, 0, workspace), m = params_of(c, b, 1, workspace);
  if (c.batch_statistics) n.sums = a.sums.data<float>(), m.sums = b.sums.data<float>();
  write_pair(context, c, a.x, b.x, y, a.saved.signs, n, m);
  return nullptr;
}

Refusal pair_recompute_gpu(Context& context, const BatchNormCase& c, const BatchNormSide& a,
                           const BatchNormSide& b, const Tensor& y, const Tensor& workspace) {
  write_pair(context, c, a.x, b.x, y, Tensor(), params_of(c, a, 0, workspace),
             params_of(c, b, 1, workspace));
  return nullptr;
}

Refusal pair_backward_gpu(Context& context, const BatchNormCase& c, const BatchNormSide& a,
                          const BatchNormSide& b, const Tensor& dy, const Tensor& more_dy,
                          const BatchNormGradients& of_a, const BatchNormGradients& of_b,
                          const Tensor& workspace) {
  const Gpu& gpu = context.gpu();
  ChannelParams n = params_of(c, a, 0, workspace), m = params_of(c, b, 1, workspace);
  n.learned = learned_gradients<float>(of_a);
  m.learned = learned_gradients<float>(of_b);
  on_packs(dy, [&]<typename T>() {
    const PairTerm<T> term{dy.data<T>(),
                           more_dy.data<T>(),
                           a.x.data<T>(),
                           b.x.data<T>(),
                           a.saved.signs.data<uint8_t>(),
                           c.slope};
    if (more_dy) {
      start_pair_sums<T, true>(gpu, c, term, dy.data<T>(), n, m);
    } else {
      start_pair_sums<T, false>(gpu, c, term, dy.data<T>(), n, m);
    }
    if (!of_a.dx && !of_b.dx) return;
    const ColumnGrid wide(c.view.each(), c.view.channels, kPackCount<T>);
    launch(gpu, apply_pair_gradient<T, kPackCount<T>>, {wide.blocks, 256}, wide, term,
           of_a.dx.data<T>(), of_b.dx.data<T>(), n, m);
  });
  return nullptr;
}

REGISTER_KERNEL(batch_norm_pair_forward_kernels, "channels_last", RunsOn::gpu, 0, pair_forward_gpu);
REGISTER_KERNEL(batch_norm_pair_recompute_kernels, "channels_last", RunsOn::gpu, 0,
                pair_recompute_gpu);
REGISTER_KERNEL(batch_norm_pair_backward_kernels, "channels_last", RunsOn::gpu, 0,
                pair_backward_gpu);

}  // namespace
}  // namespace crema
