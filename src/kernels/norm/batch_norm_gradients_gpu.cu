// Batch normalization of channels-last tensors on the GPU, backward: two kernels (sums, result). A
// thread keeps the parameters of one pack of channels and walks over rows.
#include "device/launch.h"
#include "kernels/norm/batch_norm_params.cuh"

namespace crema {
namespace {

using namespace batch_norm;

// How the gradient g before the ReLU is computed: by the sign of y, by the sign bits that forward
// saved, or by the sign of the value recomputed from x; h is x - mean, or y where x is not kept.
enum class Mask { none, from_y, from_signs, from_x };
enum class From { x, y, nothing };  // h; nothing: 0, unused with stored statistics

template <typename T, int kPack, Mask kMask, From kFrom, bool kTwo = false>
struct Term {
  const T *x, *y, *dy, *more_dy;  // kTwo: the gradient is dy + more_dy
  const uint8_t* signs;
  float slope;
  float mean[kPack], factor[kPack], bias[kPack];

  __device__ void start(const ChannelParams& n, int64_t c) {
#pragma unroll
    for (int k = 0; k < kPack; ++k) {
      mean[k] = n.mean[c + k];
      factor[k] = n.factor(c + k);
      bias[k] = n.bias(c + k);
    }
  }
  struct Loaded {
    Pack<T, kPack> dy, more_dy, x, y;
    unsigned signs;
  };
  __device__ Loaded load(int64_t at) const {
    using P = Pack<T, kPack>;
    Loaded p;
    p.dy = *reinterpret_cast<const P*>(dy + at);
    if constexpr (kTwo) p.more_dy = *reinterpret_cast<const P*>(more_dy + at);
    if constexpr (kMask == Mask::from_signs) p.signs = signs[at / kPack];
    if constexpr (kFrom == From::x) p.x = *reinterpret_cast<const P*>(x + at);
    if constexpr (kFrom == From::y || kMask == Mask::from_y)
      p.y = *reinterpret_cast<const P*>(y + at);
    return p;
  }
  __device__ void read(const Loaded& p, float (&g)[kPack], float (&h)[kPack]) const {
#pragma unroll
    for (int k = 0; k < kPack; ++k) {
      g[k] = p.dy.v[k];
      if constexpr (kTwo) g[k] += static_cast<float>(p.more_dy.v[k]);
      h[k] = 0;
      if constexpr (kFrom == From::y) h[k] = p.y.v[k];
      if constexpr (kFrom == From::x) h[k] = static_cast<float>(p.x.v[k]) - mean[k];
      if constexpr (kMask == Mask::from_y) {
        if (!(static_cast<float>(p.y.v[k]) > 0)) g[k] *= slope;
      }
      if constexpr (kMask == Mask::from_signs) {
        if (!(p.signs >> k & 1u)) g[k] *= slope;
      }
      if constexpr (kMask == Mask::from_x) {
        if (!(h[k] * factor[k] + bias[k] > 0)) g[k] *= slope;
      }
    }
  }
};

// masked: where to store the gradient before the ReLU; may be dy's memory, or null.
template <typename T, int kPack, Mask kMask, From kFrom, bool kTwo>
__global__ void sum_gradients(ColumnGrid grid, Term<T, kPack, kMask, kFrom, kTwo> term, T* masked,
                              ChannelParams n, bool through_statistics, float* parts,
                              unsigned* counters) {
  using P = Pack<T, kPack>;
  const int64_t column = first_column<kPack>(grid);
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
                               ChannelParams n) {
  using P = Pack<T, kPack>;
  const int64_t first = first_column<kPack>(grid);
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

// The inputs of backward.
template <typename T, int kPack, Mask kMask, From kFrom, bool kTwo>
Term<T, kPack, kMask, kFrom, kTwo> term_of(const Tensor& x, const Tensor& y, const Tensor& dy,
                                           const Tensor& more_dy, const Tensor& signs,
                                           float slope) {
  Term<T, kPack, kMask, kFrom, kTwo> term{};
  term.x = x.data<T>();
  term.y = y.data<T>();
  term.dy = dy.data<T>();
  term.more_dy = more_dy.data<T>();
  term.signs = signs.data<uint8_t>();
  term.slope = slope;
  return term;
}

// rows: those that have a gradient, of c.view.each().
template <typename T, int kPack, Mask kMask, From kFrom, bool kTwo>
void start_sums(const Gpu& gpu, const BatchNormCase& c, int64_t rows,
                const Term<T, kPack, kMask, kFrom, kTwo>& term, const Tensor& kept,
                const ChannelParams& n, bool through_statistics) {
  const auto kernel = sum_gradients<T, kPack, kMask, kFrom, kTwo>;
  const ColumnGrid grid = grid_of_sums(kernel, rows, c.view.channels, kPack, 2);
  launch(gpu, kernel, {grid.blocks, 256}, grid, term, kept.data<T>(), n, through_statistics,
         gpu.parts, gpu.counters);
}

}  // namespace

void batch_norm_sums_gpu(Context& context, const BatchNormCase& c,
                         const BatchNormParameters& parameters, const Tensor& x, const Tensor& dy,
                         const Tensor& more_dy, const BatchNormSaved& saved,
                         const BatchNormGradients& gradients, const Tensor& workspace) {
  ChannelParams n = channel_params(c, parameters, saved, workspace.data<float>());
  n.learn(gradients);
  const int64_t rows = dy.count() / c.view.channels;
  on_real(dy, [&]<typename T>() {
    if constexpr (!std::is_same_v<T, double>) {
      const auto run = [&]<bool kTwo>() {
        start_sums(context.gpu(), c, rows,
                   term_of<T, kPackCount<T>, Mask::from_x, From::x, kTwo>(x, Tensor(), dy, more_dy,
                                                                          Tensor(), c.slope),
                   more_dy ? dy : Tensor(), n, c.batch_statistics);
      };
      more_dy ? run.template operator()<true>() : run.template operator()<false>();
    }
  });
}

void batch_norm_backward_gpu(Context& context, const BatchNormCase& c,
                             const BatchNormParameters& parameters, const Tensor& x,
                             const Tensor& y, const Tensor& dy, const Tensor& more_dy,
                             const BatchNormSaved& saved, const BatchNormGradients& gradients,
                             const Tensor& workspace) {
  if (dy.count() == 0) return;
  const Gpu& gpu = context.gpu();
  ChannelParams n = channel_params(c, parameters, saved, workspace.data<float>());
  n.learn(gradients);
  const bool from_y = !c.added && !c.relu && !parameters.scale && !parameters.shift;
  const bool through_statistics = c.batch_statistics && gradients.dx;
  // Where the first pass stores the gradient before the ReLU, with both parts added: for the added
  // bottom, or so that the second pass reads only one part.
  const Tensor kept = gradients.d_added ? gradients.d_added : more_dy ? dy : Tensor();
  const bool sums = through_statistics || gradients.d_scale || gradients.d_shift || kept;

  const auto run = [&]<typename T, int kPack, Mask kMask, From kFrom, bool kTwo = false>(
      ColumnGrid wide) {
    const auto read = [&]<Mask kThis, bool kBoth>(const Tensor& gradient) {
      return term_of<T, kPack, kThis, kFrom, kBoth>(x, y, gradient, more_dy, saved.signs, c.slope);
    };
    wide.from_end = !sums;
    if (sums)
      start_sums(gpu, c, c.view.each(), read.template operator()<kMask, kTwo>(dy), kept, n,
                 through_statistics);
    if (!gradients.dx) return;
    ChannelParams last = n;
    if (!through_statistics) last.slant = last.offset = nullptr;
    if (kept) {
      launch(gpu, apply_gradient<T, kPack, Mask::none, kFrom>, {wide.blocks, 256}, wide,
             read.template operator()<Mask::none, false>(kept), gradients.dx.data<T>(), last);
    } else if constexpr (!kTwo) {
      const auto term = read.template operator()<kMask, false>(dy);
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
