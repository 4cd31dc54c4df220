// Batch normalization of channels-last tensors on the GPU: two kernels forward (statistics, result)
// and two backward (sums, result). A thread keeps a pack of channels with their numbers and walks
// over rows.
#include <algorithm>

#include "device/launch.h"
#include "kernels/batch_norm_bodies.h"
#include "kernels/batch_norm_term.cuh"
#include "kernels/column_sums.cuh"
#include "tensor/on.h"

namespace crema {
namespace {

using namespace batch_norm;

template <typename T, int kPack>
__global__ void find_statistics(ColumnGrid grid, const T* x, Numbers n, float* parts,
                                unsigned* counters) {
  using P = Pack<T, kPack>;
  float pivot[kPack];  // a value near the mean: squares of differences from it lose no digits
  const int64_t column =
      (static_cast<int64_t>(blockIdx.y) * grid.lanes + threadIdx.x % grid.lanes) * kPack;
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
    const double near = totals[0] / n.each, spread = totals[1] / n.each - near * near;
    const double variance = spread > 0 ? spread : 0;
    const float mean = static_cast<float>(static_cast<float>(x[c]) + near);
    n.mean[c] = mean;
    n.inverse[c] = static_cast<float>(1 / sqrt(variance + n.stored.eps));
    n.stored.add(c, mean, variance, n.each);
  };
  sum_columns<kPack, 2>(grid, parts, counters, visit, finish);
}

__global__ void take_stored(int64_t channels, Numbers n) {
  const int64_t c = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (c < channels) n.stored.take(c, n.mean, n.inverse);
}

__global__ void write_affine(Numbers n, int64_t channels, Half* affine) {
  const int64_t c = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (c >= channels) return;
  constexpr float kMost = 65504;
  float mean, inverse;
  n.statistics(c, channels, true, mean, inverse);
  const float factor = n.factor(c, inverse), shift = n.bias(c) - mean * factor;
  affine[c] = fminf(fmaxf(factor, -kMost), kMost);
  affine[channels + c] = fminf(fmaxf(shift, -kMost), kMost);
}

// signs: a byte a pack, or null. Where there are sums, the statistics are made of them here, by
// each thread its own, so that no kernel stands between.
template <typename T, int kPack, bool kAdded, bool kRelu>
__global__ void apply(ColumnGrid grid, const T* x, const T* added, T* y, uint8_t* signs,
                      float slope, Numbers n) {
  using P = Pack<T, kPack>;
  const int64_t first =
      (static_cast<int64_t>(blockIdx.y) * grid.lanes + threadIdx.x % grid.lanes) * kPack;
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

// masked: where the gradient that arrives at x is kept, which may be dy's memory; or null.
template <typename T, int kPack, Mask kMask, From kFrom, bool kTwo>
__global__ void sum_gradients(ColumnGrid grid, Term<T, kPack, kMask, kFrom, kTwo> term, T* masked,
                              Numbers n, bool through_statistics, float* parts,
                              unsigned* counters) {
  using P = Pack<T, kPack>;
  const int64_t column =
      (static_cast<int64_t>(blockIdx.y) * grid.lanes + threadIdx.x % grid.lanes) * kPack;
  if (column < grid.columns) term.start(n, column);
  const auto visit = [&]<int kRows>(const RowSet& rows, int64_t at, float(&sums)[2][kPack]) {
    typename Term<T, kPack, kMask, kFrom, kTwo>::Loaded loaded[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      loaded[r] = term.load((rows.first + r * rows.step) * grid.columns + at);
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      float g[kPack], h[kPack];
      term.read(loaded[r], g, h);
      P out;
#pragma unroll
      for (int k = 0; k < kPack; ++k) {
        sums[0][k] += g[k];
        sums[1][k] += g[k] * h[k];
        out.v[k] = g[k];
      }
      if (masked)
        *reinterpret_cast<P*>(masked + (rows.first + r * rows.step) * grid.columns + at) = out;
    }
  };
  const auto finish = [&](int64_t c, const double* totals) {
    n.finish_gradients(c, totals[0], totals[1], kFrom == From::y, through_statistics);
  };
  sum_columns<kPack, 2>(grid, parts, counters, visit, finish);
}

template <typename T, int kPack, Mask kMask, From kFrom>
__global__ void apply_gradient(ColumnGrid grid, Term<T, kPack, kMask, kFrom> term, T* dx,
                               Numbers n) {
  using P = Pack<T, kPack>;
  const int64_t first =
      (static_cast<int64_t>(blockIdx.y) * grid.lanes + threadIdx.x % grid.lanes) * kPack;
  if (first >= grid.columns) return;
  term.start(n, first);
  float slant[kPack], offset[kPack];
#pragma unroll
  for (int k = 0; k < kPack; ++k) {
    slant[k] = n.slant ? n.slant[first + k] : 0;
    offset[k] = n.offset ? n.offset[first + k] : 0;
  }
  over_rows<kPack>(grid, [&]<int kRows>(const RowSet& rows, int64_t column) {
    typename Term<T, kPack, kMask, kFrom>::Loaded loaded[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      loaded[r] = term.load((rows.first + r * rows.step) * grid.columns + column);
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      float g[kPack], h[kPack];
      term.read(loaded[r], g, h);
      P out;
#pragma unroll
      for (int k = 0; k < kPack; ++k)
        out.v[k] = term.factor[k] * g[k] + (h[k] * slant[k] + offset[k]);
      *reinterpret_cast<P*>(dx + (rows.first + r * rows.step) * grid.columns + column) = out;
    }
  });
}

// What batch_norm_takes_packs() allows.
template <typename T, int kPack>
void require_packs(const Tensor& given) {
  require(!given || kPack == kPackCount<T>,
          "batch normalization in packs of 16 bytes needs tensors "
          "that begin at multiples of 16 bytes");
}

// Calls body<T, kPack>(grid without sums) for the tensor's type and the widest pack.
template <typename Body, typename... Tensors>
void with_grid(const ChannelView& view, const Tensor& x, const Body& body,
               const Tensors&... others) {
  on_real(x, [&]<typename T>() {
    if constexpr (!std::is_same_v<T, double>) {
      with_column_pack<T>(
          view.channels,
          [&]<int kPack>() {
            body.template operator()<T, kPack>(ColumnGrid(view.each(), view.channels, kPack));
          },
          x.raw(), others.raw()...);
    }
  });
}

// The batch's statistics, or the stored ones, unless there are sums to make them of.
template <typename T, int kPack>
void find(const Gpu& gpu, const BatchNormCase& c, const Tensor& x, const Numbers& n) {
  if (n.sums) return;
  if (c.batch_statistics) {
    const auto kernel = find_statistics<T, kPack>;
    const ColumnGrid grid = grid_of_sums(kernel, c.view.each(), c.view.channels, kPack, 2);
    launch(gpu, kernel, {grid.blocks, 256}, grid, x.data<T>(), n, gpu.parts, gpu.counters);
  } else {
    const auto blocks = static_cast<unsigned>((c.view.channels + 255) / 256);
    launch(gpu, take_stored, {blocks, 256}, c.view.channels, n);
  }
}

// signs: may be empty.
template <typename T, int kPack>
void write_result(const Gpu& gpu, const ColumnGrid& grid, const BatchNormCase& c, const Tensor& x,
                  const Tensor& added, const Tensor& y, const Tensor& signs, const Numbers& n) {
  const auto kernel = added    ? c.relu ? apply<T, kPack, true, true> : apply<T, kPack, true, false>
                         : c.relu ? apply<T, kPack, false, true>
                               : apply<T, kPack, false, false>;
  launch(gpu, kernel, {grid.blocks, 256}, grid, x.data<T>(), added.data<T>(), y.data<T>(),
         signs.data<uint8_t>(), c.slope, n);
}

}  // namespace

bool batch_norm_serves_gpu(Context& context, const BatchNormCase& c, DType dtype) {
  return context.device() == Device::gpu && context.implementation != "plain" &&
         c.view.groups == 1 && (c.view.inner == 1 || c.view.channels == 1) && dtype != DType::f64;
}

void batch_norm_forward_gpu(Context& context, const BatchNormCase& c,
                            const BatchNormParameters& parameters, const Tensor& x,
                            const Tensor& added, const Tensor& sums, const Tensor& y,
                            const BatchNormSaved& saved, const Tensor& workspace) {
  if (x.count() == 0) return;
  const Gpu& gpu = context.gpu();
  Numbers n = numbers_of(c, parameters, saved, workspace.data<float>());
  if (c.batch_statistics) n.sums = sums.data<float>();
  with_grid(
      c.view, x,
      [&]<typename T, int kPack>(ColumnGrid wide) {
        require_packs<T, kPack>(saved.signs);
        find<T, kPack>(gpu, c, x, n);
        // What the statistics' pass, or who wrote x, began with lies farthest from the cache.
        wide.from_end = n.sums || !c.batch_statistics;
        write_result<T, kPack>(gpu, wide, c, x, added, y, saved.signs, n);
      },
      added, y);
}

void batch_norm_statistics_gpu(Context& context, const BatchNormCase& c,
                               const BatchNormParameters& parameters, const Tensor& x,
                               const BatchNormSaved& saved, const Tensor& workspace) {
  const Numbers n = numbers_of(c, parameters, saved, workspace.data<float>());
  with_grid(c.view, x, [&]<typename T, int kPack>(const ColumnGrid&) {
    find<T, kPack>(context.gpu(), c, x, n);
  });
}

void batch_norm_affine_gpu(Context& context, const BatchNormCase& c,
                           const BatchNormParameters& parameters, const Tensor& x,
                           const Tensor& sums, const Tensor& affine, const BatchNormSaved& saved,
                           const Tensor& workspace) {
  Numbers n = numbers_of(c, parameters, saved, workspace.data<float>());
  if (c.batch_statistics) n.sums = sums.data<float>();
  if (!n.sums) batch_norm_statistics_gpu(context, c, parameters, x, saved, workspace);
  const auto blocks = static_cast<unsigned>((c.view.channels + 127) / 128);
  launch(context.gpu(), write_affine, {blocks, 128}, n, c.view.channels, affine.data<Half>());
}

void batch_norm_recompute_gpu(Context& context, const BatchNormCase& c,
                              const BatchNormParameters& parameters, const Tensor& x,
                              const Tensor& added, const Tensor& y, const BatchNormSaved& saved,
                              const Tensor& workspace) {
  if (x.count() == 0) return;
  const Numbers n = numbers_of(c, parameters, saved, workspace.data<float>());
  with_grid(
      c.view, x,
      [&]<typename T, int kPack>(const ColumnGrid& wide) {
        write_result<T, kPack>(context.gpu(), wide, c, x, added, y, {}, n);
      },
      added, y);
}

void batch_norm_backward_gpu(Context& context, const BatchNormCase& c,
                             const BatchNormParameters& parameters, const Tensor& x,
                             const Tensor& y, const Tensor& dy, const Tensor& more_dy,
                             const BatchNormSaved& saved, const BatchNormGradients& gradients,
                             const Tensor& workspace) {
  if (dy.count() == 0) return;
  const Gpu& gpu = context.gpu();
  Numbers n = numbers_of(c, parameters, saved, workspace.data<float>());
  n.d_scale = gradients.d_scale.data<float>();
  n.d_shift = gradients.d_shift.data<float>();
  n.accumulate_scale = gradients.accumulate_scale;
  n.accumulate_shift = gradients.accumulate_shift;
  const bool from_y = !c.added && !c.relu && !parameters.scale && !parameters.shift;
  const bool through_statistics = c.batch_statistics && gradients.dx;
  // The gradient that arrives at x, masked and of both parts, when the first pass keeps it: for the
  // added bottom, or so that the second pass reads one part only.
  const Tensor kept = gradients.d_added ? gradients.d_added : more_dy ? dy : Tensor();
  const bool sums = through_statistics || gradients.d_scale || gradients.d_shift || kept;

  const auto run = [&]<typename T, int kPack, Mask kMask, From kFrom, bool kTwo = false>(
      ColumnGrid wide) {
    const auto term_of = [&]<Mask kThis, bool kBoth>(const Tensor& gradient) {
      Term<T, kPack, kThis, kFrom, kBoth> term{};
      term.x = x.data<T>();
      term.y = y.data<T>();
      term.dy = gradient.data<T>();
      term.more_dy = more_dy.data<T>();
      term.signs = saved.signs.data<uint8_t>();
      term.slope = c.slope;
      return term;
    };
    wide.from_end = !sums;
    if (sums) {
      const auto kernel = sum_gradients<T, kPack, kMask, kFrom, kTwo>;
      const ColumnGrid grid = grid_of_sums(kernel, c.view.each(), c.view.channels, kPack, 2);
      launch(gpu, kernel, {grid.blocks, 256}, grid, term_of.template operator()<kMask, kTwo>(dy),
             kept.data<T>(), n, through_statistics, gpu.parts, gpu.counters);
    }
    if (!gradients.dx) return;
    Numbers last = n;
    if (!through_statistics) last.slant = last.offset = nullptr;
    if (kept) {
      launch(gpu, apply_gradient<T, kPack, Mask::none, kFrom>, {wide.blocks, 256}, wide,
             term_of.template operator()<Mask::none, false>(kept), gradients.dx.data<T>(), last);
    } else if constexpr (!kTwo) {
      const auto term = term_of.template operator()<kMask, false>(dy);
      launch(gpu, apply_gradient<T, kPack, kMask, kFrom>, {wide.blocks, 256}, wide, term,
             gradients.dx.data<T>(), last);
    }
  };
  with_grid(
      c.view, dy,
      [&]<typename T, int kPack>(const ColumnGrid& wide) {
        require_packs<T, kPack>(saved.signs);
        if constexpr (kPack == kPackCount<T>) {
          if (saved.signs && more_dy)
            return run.template operator()<T, kPack, Mask::from_signs, From::x, true>(wide);
          if (saved.signs)
            return run.template operator()<T, kPack, Mask::from_signs, From::x>(wide);
          if (more_dy && c.relu && !c.added)
            return run.template operator()<T, kPack, Mask::from_x, From::x, true>(wide);
        }
        require(!more_dy, "batch normalization was given two parts of a gradient it takes whole");
        if (from_y && !through_statistics) {
          run.template operator()<T, kPack, Mask::none, From::nothing>(wide);
        } else if (from_y) {
          run.template operator()<T, kPack, Mask::none, From::y>(wide);
        } else if (!c.relu) {
          run.template operator()<T, kPack, Mask::none, From::x>(wide);
        } else if (c.added) {
          run.template operator()<T, kPack, Mask::from_y, From::x>(wide);
        } else {
          run.template operator()<T, kPack, Mask::from_x, From::x>(wide);
        }
      },
      x, y, more_dy, gradients.dx, gradients.d_added);
}

}  // namespace crema
