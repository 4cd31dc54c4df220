// Batch normalization of channels-last tensors on the GPU: two kernels forward (statistics, result)
// and two backward (sums, result). A thread keeps a pack of channels with their numbers and walks
// over rows.
#include <algorithm>

#include "kernels/batch_norm_bodies.h"
#include "kernels/column_sums.cuh"
#include "tensor/on.h"

namespace crema {
namespace {

// One value a channel each.
struct Numbers {
  const float *scale, *shift;                            // learned; null: 1 and 0
  float *stored_mean, *stored_variance, *stored_factor;  // Caffe's three blobs
  float *mean, *inverse;                                 // kept for backward
  float *slant, *offset;     // backward: dx = factor g + h slant + offset
  float *d_scale, *d_shift;  // null: not wanted
  bool accumulate_scale, accumulate_shift;
  float eps, fraction;
  double each;  // elements of a channel

  __device__ float factor(int64_t c) const { return scale ? inverse[c] * scale[c] : inverse[c]; }
  __device__ float bias(int64_t c) const { return shift ? shift[c] : 0; }
};

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
    n.inverse[c] = static_cast<float>(1 / sqrt(variance + n.eps));
    const double unbiased = n.each > 1 ? variance * n.each / (n.each - 1) : variance;
    n.stored_mean[c] = mean + n.fraction * n.stored_mean[c];
    n.stored_variance[c] = static_cast<float>(unbiased) + n.fraction * n.stored_variance[c];
    if (c == 0) n.stored_factor[0] = 1 + n.fraction * n.stored_factor[0];
  };
  sum_columns<kPack, 2>(grid, parts, counters, visit, finish);
}

__global__ void take_stored(int64_t channels, Numbers n) {
  const int64_t c = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (c >= channels) return;
  const float factor = n.stored_factor[0] == 0 ? 0 : 1 / n.stored_factor[0];
  n.mean[c] = factor * n.stored_mean[c];
  n.inverse[c] = 1 / sqrtf(factor * n.stored_variance[c] + n.eps);
}

template <typename T, int kPack, bool kAdded, bool kRelu>
__global__ void apply(ColumnGrid grid, const T* x, const T* added, T* y, float slope, Numbers n) {
  using P = Pack<T, kPack>;
  const int64_t first =
      (static_cast<int64_t>(blockIdx.y) * grid.lanes + threadIdx.x % grid.lanes) * kPack;
  if (first >= grid.columns) return;
  float mean[kPack], factor[kPack], bias[kPack];
#pragma unroll
  for (int k = 0; k < kPack; ++k) {
    mean[k] = n.mean[first + k];
    factor[k] = n.factor(first + k);
    bias[k] = n.bias(first + k);
  }
  over_rows<kPack>(grid, [&]<int kRows>(const RowSet& rows, int64_t column) {
    P p[kRows], more[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int64_t at = (rows.first + r * rows.step) * grid.columns + column;
      p[r] = *reinterpret_cast<const P*>(x + at);
      if constexpr (kAdded) more[r] = *reinterpret_cast<const P*>(added + at);
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int k = 0; k < kPack; ++k) {
        float value = (static_cast<float>(p[r].v[k]) - mean[k]) * factor[k] + bias[k];
        if constexpr (kAdded) value += static_cast<float>(more[r].v[k]);
        if constexpr (kRelu) value = value > 0 ? value : slope * value;
        p[r].v[k] = value;
      }
      *reinterpret_cast<P*>(y + (rows.first + r * rows.step) * grid.columns + column) = p[r];
    }
  });
}

// How the gradient that arrives at x is found: through the ReLU by the sign of y, or by that of the
// value computed from x again; h is x - mean, or y where x is not kept.
enum class Mask { none, from_y, from_x };
enum class From { x, y, nothing };  // h; nothing: 0, with stored statistics nobody asks

template <typename T, int kPack, Mask kMask, From kFrom>
struct Term {
  const T *x, *y, *dy;
  float slope;
  float mean[kPack], factor[kPack], bias[kPack];

  __device__ void start(const Numbers& n, int64_t c) {
#pragma unroll
    for (int k = 0; k < kPack; ++k) {
      mean[k] = n.mean[c + k];
      factor[k] = n.factor(c + k);
      bias[k] = n.bias(c + k);
    }
  }
  struct Loaded {
    Pack<T, kPack> dy, x, y;
  };
  __device__ Loaded load(int64_t at) const {
    using P = Pack<T, kPack>;
    Loaded p;
    p.dy = *reinterpret_cast<const P*>(dy + at);
    if constexpr (kFrom == From::x) p.x = *reinterpret_cast<const P*>(x + at);
    if constexpr (kFrom == From::y || kMask == Mask::from_y)
      p.y = *reinterpret_cast<const P*>(y + at);
    return p;
  }
  __device__ void read(const Loaded& p, float (&g)[kPack], float (&h)[kPack]) const {
#pragma unroll
    for (int k = 0; k < kPack; ++k) {
      g[k] = p.dy.v[k];
      h[k] = 0;
      if constexpr (kFrom == From::y) h[k] = p.y.v[k];
      if constexpr (kFrom == From::x) h[k] = static_cast<float>(p.x.v[k]) - mean[k];
      if constexpr (kMask == Mask::from_y) {
        if (!(static_cast<float>(p.y.v[k]) > 0)) g[k] *= slope;
      }
      if constexpr (kMask == Mask::from_x) {
        if (!(h[k] * factor[k] + bias[k] > 0)) g[k] *= slope;
      }
    }
  }
};

template <typename T, int kPack, Mask kMask, From kFrom>
__global__ void sum_gradients(ColumnGrid grid, Term<T, kPack, kMask, kFrom> term, T* masked,
                              Numbers n, bool through_statistics, float* parts,
                              unsigned* counters) {
  using P = Pack<T, kPack>;
  const int64_t column =
      (static_cast<int64_t>(blockIdx.y) * grid.lanes + threadIdx.x % grid.lanes) * kPack;
  if (column < grid.columns) term.start(n, column);
  const auto visit = [&]<int kRows>(const RowSet& rows, int64_t at, float(&sums)[2][kPack]) {
    typename Term<T, kPack, kMask, kFrom>::Loaded loaded[kRows];
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
    const float inverse = n.inverse[c], factor = n.factor(c);
    const double shrink = kFrom == From::y ? 1 : static_cast<double>(inverse) * inverse;
    n.slant[c] = through_statistics ? static_cast<float>(-factor * shrink * totals[1] / n.each) : 0;
    n.offset[c] = through_statistics ? static_cast<float>(-factor * totals[0] / n.each) : 0;
    if (n.d_scale) {
      const float value = static_cast<float>(inverse * totals[1]);
      n.d_scale[c] = n.accumulate_scale ? n.d_scale[c] + value : value;
    }
    if (n.d_shift) {
      const float value = static_cast<float>(totals[0]);
      n.d_shift[c] = n.accumulate_shift ? n.d_shift[c] + value : value;
    }
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

Numbers numbers_of(const BatchNormCase& c, const BatchNormParameters& p, const Tensor& mean,
                   const Tensor& inverse, const Tensor& workspace) {
  Numbers n{};
  n.scale = p.scale.data<float>();
  n.shift = p.shift.data<float>();
  n.stored_mean = p.stored_mean.data<float>();
  n.stored_variance = p.stored_variance.data<float>();
  n.stored_factor = p.stored_factor.data<float>();
  n.mean = mean.data<float>();
  n.inverse = inverse.data<float>();
  n.slant = workspace.data<float>();
  n.offset = n.slant + c.view.channels;
  n.eps = c.eps;
  n.fraction = c.fraction;
  n.each = static_cast<double>(c.view.each());
  return n;
}

// Calls body<T, kPack>(grid) for the tensor's type and the widest pack.
template <typename Body, typename... Tensors>
void with_grid(const ChannelView& view, const Tensor& x, const Body& body,
               const Tensors&... others) {
  on_real(x, [&]<typename T>() {
    if constexpr (!std::is_same_v<T, double>) {
      with_column_pack<T>(
          view.channels,
          [&]<int kPack>() {
            body.template operator()<T, kPack>(ColumnGrid(view.each(), view.channels, kPack, 2));
            check_cuda(cudaGetLastError(), "launching a kernel");
          },
          x.raw(), others.raw()...);
    }
  });
}

}  // namespace

bool batch_norm_serves_gpu(Context& context, const BatchNormCase& c, DType dtype) {
  return context.device() == Device::gpu && context.implementation != "plain" &&
         c.view.groups == 1 && (c.view.inner == 1 || c.view.channels == 1) && dtype != DType::f64;
}

void batch_norm_forward_gpu(Context& context, const BatchNormCase& c,
                            const BatchNormParameters& parameters, const Tensor& x,
                            const Tensor& added, const Tensor& y, const Tensor& mean,
                            const Tensor& inverse, const Tensor& workspace) {
  if (x.count() == 0) return;
  const Gpu& gpu = context.gpu();
  const Numbers n = numbers_of(c, parameters, mean, inverse, workspace);
  with_grid(
      c.view, x,
      [&]<typename T, int kPack>(const ColumnGrid& grid) {
        if (c.batch_statistics) {
          find_statistics<T, kPack>
              <<<grid.blocks, 256, 0, gpu.stream>>>(grid, x.data<T>(), n, gpu.parts, gpu.counters);
        } else {
          const auto blocks = static_cast<unsigned>((c.view.channels + 255) / 256);
          take_stored<<<blocks, 256, 0, gpu.stream>>>(c.view.channels, n);
        }
        const auto kernel =
            added    ? c.relu ? apply<T, kPack, true, true> : apply<T, kPack, true, false>
               : c.relu ? apply<T, kPack, false, true>
                     : apply<T, kPack, false, false>;
        kernel<<<grid.blocks, 256, 0, gpu.stream>>>(grid, x.data<T>(), added.data<T>(), y.data<T>(),
                                                    c.slope, n);
      },
      added, y);
}

void batch_norm_backward_gpu(Context& context, const BatchNormCase& c,
                             const BatchNormParameters& parameters, const Tensor& x,
                             const Tensor& y, const Tensor& dy, const Tensor& mean,
                             const Tensor& inverse, const BatchNormGradients& gradients,
                             const Tensor& workspace) {
  if (dy.count() == 0) return;
  const Gpu& gpu = context.gpu();
  Numbers n = numbers_of(c, parameters, mean, inverse, workspace);
  n.d_scale = gradients.d_scale.data<float>();
  n.d_shift = gradients.d_shift.data<float>();
  n.accumulate_scale = gradients.accumulate_scale;
  n.accumulate_shift = gradients.accumulate_shift;
  const bool from_y = !c.added && !c.relu && !parameters.scale && !parameters.shift;
  const bool through_statistics = c.batch_statistics && gradients.dx;
  const bool sums =
      through_statistics || gradients.d_scale || gradients.d_shift || gradients.d_added;

  // With what is kept apart for the added bottom the mask has been applied already.
  const auto run = [&]<typename T, int kPack, Mask kMask, From kFrom>(const ColumnGrid& grid) {
    Term<T, kPack, kMask, kFrom> term{x.data<T>(), y.data<T>(), dy.data<T>(), c.slope, {}, {}, {}};
    if (sums) {
      sum_gradients<T, kPack, kMask, kFrom><<<grid.blocks, 256, 0, gpu.stream>>>(
          grid, term, gradients.d_added.data<T>(), n, through_statistics, gpu.parts, gpu.counters);
    }
    if (!gradients.dx) return;
    Numbers last = n;
    if (!through_statistics) last.slant = last.offset = nullptr;
    if (gradients.d_added) {
      Term<T, kPack, Mask::none, kFrom> rest{
          x.data<T>(), y.data<T>(), gradients.d_added.data<T>(), c.slope, {}, {}, {}};
      apply_gradient<T, kPack, Mask::none, kFrom>
          <<<grid.blocks, 256, 0, gpu.stream>>>(grid, rest, gradients.dx.data<T>(), last);
    } else {
      apply_gradient<T, kPack, kMask, kFrom>
          <<<grid.blocks, 256, 0, gpu.stream>>>(grid, term, gradients.dx.data<T>(), last);
    }
  };
  with_grid(
      c.view, dy,
      [&]<typename T, int kPack>(const ColumnGrid& grid) {
        if (from_y && !through_statistics) {
          run.template operator()<T, kPack, Mask::none, From::nothing>(grid);
        } else if (from_y) {
          run.template operator()<T, kPack, Mask::none, From::y>(grid);
        } else if (!c.relu) {
          run.template operator()<T, kPack, Mask::none, From::x>(grid);
        } else if (c.added) {
          run.template operator()<T, kPack, Mask::from_y, From::x>(grid);
        } else {
          run.template operator()<T, kPack, Mask::from_x, From::x>(grid);
        }
      },
      x, y, gradients.dx, gradients.d_added);
}

}  // namespace crema
