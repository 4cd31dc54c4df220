// Batch normalization of channels-last tensors on the GPU, backward: two kernels (sums, result). A
// thread keeps the parameters of one pack of channels and walks over rows.
#include "base/ceil_div.h"
#include "device/launch.h"
#include "kernels/norm/batch_norm_params.cuh"
#include "kernels/pointwise/gelu.h"

namespace crema {
namespace {

using namespace batch_norm;

// How the gradient g before the activation is computed: before a ReLU by the sign of y, by the sign
// bits that forward saved, or by the sign of the value recomputed from x; before a GELU from that.
enum class Mask { none, from_y, from_signs, from_x, gelu_from_x };
// Where h comes from: x - mean, or y where x is not kept; zero: stored statistics do not need it.
enum class Deviation { from_x, from_y, zero };

template <typename T, int kPack, Mask kMask, Deviation kDeviation, bool kTwoParts = false>
struct Term {
  const T *x, *y, *dy, *more_dy;  // kTwoParts: the gradient is dy + more_dy
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
    if constexpr (kTwoParts) p.more_dy = *reinterpret_cast<const P*>(more_dy + at);
    if constexpr (kMask == Mask::from_signs) p.signs = signs[at / kPack];
    if constexpr (kDeviation == Deviation::from_x) p.x = *reinterpret_cast<const P*>(x + at);
    if constexpr (kDeviation == Deviation::from_y || kMask == Mask::from_y)
      p.y = *reinterpret_cast<const P*>(y + at);
    return p;
  }
  __device__ void read(const Loaded& p, float (&g)[kPack], float (&h)[kPack]) const {
#pragma unroll
    for (int k = 0; k < kPack; ++k) {
      g[k] = p.dy.v[k];
      if constexpr (kTwoParts) g[k] += static_cast<float>(p.more_dy.v[k]);
      h[k] = 0;
      if constexpr (kDeviation == Deviation::from_y) h[k] = p.y.v[k];
      if constexpr (kDeviation == Deviation::from_x) h[k] = static_cast<float>(p.x.v[k]) - mean[k];
      if constexpr (kMask == Mask::from_y) {
        if (!(static_cast<float>(p.y.v[k]) > 0)) g[k] *= slope;
      }
      if constexpr (kMask == Mask::from_signs) {
        if (!(p.signs >> k & 1u)) g[k] *= slope;
      }
      if constexpr (kMask == Mask::from_x) {
        if (!(h[k] * factor[k] + bias[k] > 0)) g[k] *= slope;
      }
      if constexpr (kMask == Mask::gelu_from_x)
        g[k] = Gelu<false>().gradient(g[k], h[k] * factor[k] + bias[k]);
    }
  }
};

// relu_dy: where to store g; may be dy's memory, or null.
template <typename T, int kPack, Mask kMask, Deviation kDeviation, bool kTwoParts>
__global__ void sum_gradients(ColumnGrid grid, Term<T, kPack, kMask, kDeviation, kTwoParts> term,
                              T* relu_dy, ChannelParams n, bool through_statistics, float* parts,
                              unsigned* counters) {
  using P = Pack<T, kPack>;
  const int64_t column = first_column<kPack>(grid);
  if (column < grid.columns) term.start(n, column);
  const auto visit = [&]<int kRows>(const RowSet& rows, int64_t at, float(&sums)[2][kPack]) {
    typename Term<T, kPack, kMask, kDeviation, kTwoParts>::Loaded loaded[kRows];
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
      if (relu_dy)
        *reinterpret_cast<P*>(relu_dy + (rows.first + r * rows.step) * grid.columns + at) = out;
    }
  };
  const auto finish = [&](int64_t c, const double* totals) {
    n.finish_gradients(c, totals[0], totals[1], kDeviation == Deviation::from_y,
                       through_statistics);
  };
  sum_columns<kPack, 2>(grid, parts, counters, visit, finish);
}

__global__ void finish_over_ranks(int64_t channels, ChannelParams n, bool h_is_y) {
  const int64_t c = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (c < channels) n.finish_terms(c, n.own.first(c), n.own.second(c), n.own.each(), h_is_y);
}

template <typename T, int kPack, Mask kMask, Deviation kDeviation>
__global__ void apply_gradient(ColumnGrid grid, Term<T, kPack, kMask, kDeviation> term, T* dx,
                               ChannelParams n) {
  using P = Pack<T, kPack>;
  const int64_t first = first_column<kPack>(grid);
  if (first >= grid.columns) return;
  term.start(n, first);
  float x_factor[kPack], constant[kPack];
#pragma unroll
  for (int k = 0; k < kPack; ++k) {
    x_factor[k] = n.x_factor ? n.x_factor[first + k] : 0;
    constant[k] = n.constant ? n.constant[first + k] : 0;
  }
  over_rows<kPack>(grid, [&]<int kRows>(const RowSet& rows, int64_t column) {
    typename Term<T, kPack, kMask, kDeviation>::Loaded loaded[kRows];
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
        out.v[k] = element_gradient(term.factor[k], g[k], h[k], x_factor[k], constant[k]);
      *reinterpret_cast<P*>(dx + (rows.first + r * rows.step) * grid.columns + column) = out;
    }
  });
}

// The inputs of backward.
template <typename T, int kPack, Mask kMask, Deviation kDeviation, bool kTwoParts>
Term<T, kPack, kMask, kDeviation, kTwoParts> term_of(const Tensor& x, const Tensor& y,
                                                     const Tensor& dy, const Tensor& more_dy,
                                                     const Tensor& signs, float slope) {
  Term<T, kPack, kMask, kDeviation, kTwoParts> term{};
  term.x = x.data<T>();
  term.y = y.data<T>();
  term.dy = dy.data<T>();
  term.more_dy = more_dy.data<T>();
  term.signs = signs.data<uint8_t>();
  term.slope = slope;
  return term;
}

// The first pass. rows: those that have a gradient, of c.view.each(). relu_dy: as above, or empty.
template <typename T, int kPack, Mask kMask, Deviation kDeviation, bool kTwoParts>
void launch_sums(const Gpu& gpu, const BatchNormCase& c, int64_t rows,
                 const Term<T, kPack, kMask, kDeviation, kTwoParts>& term, const Tensor& relu_dy,
                 const ChannelParams& n, bool through_statistics) {
  const auto kernel = sum_gradients<T, kPack, kMask, kDeviation, kTwoParts>;
  const ColumnGrid grid = grid_of_sums(kernel, rows, c.view.channels, kPack, 2);
  launch(gpu, kernel, {grid.blocks, 256}, grid, term, relu_dy.data<T>(), n, through_statistics,
         gpu.partial_sums, gpu.counters);
}

// The second pass.
template <typename T, int kPack, Mask kMask, Deviation kDeviation>
void launch_result(const Gpu& gpu, const ColumnGrid& grid,
                   const Term<T, kPack, kMask, kDeviation>& term, const Tensor& dx,
                   const ChannelParams& n) {
  launch(gpu, apply_gradient<T, kPack, kMask, kDeviation>, {grid.blocks, 256}, grid, term,
         dx.data<T>(), n);
}

}  // namespace

void batch_norm_sums_gpu(Context& context, const BatchNormCase& c,
                         const BatchNormParameters& parameters, const Tensor& x, const Tensor& dy,
                         const Tensor& more_dy, const BatchNormSaved& saved,
                         const BatchNormGradients& gradients, const Tensor& workspace) {
  ChannelParams n = channel_params(c, parameters, saved, workspace.data<float>());
  n.learned = learned_gradients<float>(gradients);
  const int64_t rows = dy.count() / c.view.channels;
  on_real(dy, [&]<typename T>() {
    if constexpr (!std::is_same_v<T, double>) {
      const auto run = [&]<bool kTwoParts>() {
        launch_sums(context.gpu(), c, rows,
                    term_of<T, kPackCount<T>, Mask::from_x, Deviation::from_x, kTwoParts>(
                        x, Tensor(), dy, more_dy, Tensor(), c.slope),
                    more_dy ? dy : Tensor(), n, c.batch_statistics);
      };
      more_dy ? run.template operator()<true>() : run.template operator()<false>();
    }
  });
}

namespace {

Refusal batch_norm_backward_gpu(Context& context, const BatchNormCase& c,
                                const BatchNormParameters& parameters, const Tensor& x,
                                const Tensor& y, const Tensor& dy, const Tensor& more_dy,
                                const BatchNormSaved& saved, const BatchNormGradients& gradients,
                                const Tensor& workspace) {
  if (!batch_norm_in_rows(c, dy.dtype()))
    return "for channels-last or one channel, and not in float64";
  const Gpu& gpu = context.gpu();
  ChannelParams n = channel_params(c, parameters, saved, workspace.data<float>());
  n.learned = learned_gradients<float>(gradients);
  const bool from_y = !c.added && !c.relu && !c.gelu && !parameters.scale && !parameters.shift;
  const bool through_statistics = c.batch_statistics && gradients.dx;
  // Where the first pass stores g, with both parts added: for the added bottom, or so that the
  // second pass reads only one part.
  const Tensor relu_dy = gradients.d_added ? gradients.d_added : more_dy ? dy : Tensor();
  const bool sums = through_statistics || gradients.d_scale || gradients.d_shift || relu_dy;
  const bool over_ranks = c.over_ranks && through_statistics;
  if (over_ranks) n.own = rank_sums<float>(c.view, workspace);

  const auto run = [&]<typename T, int kPack, Mask kMask, Deviation kDeviation,
                       bool kTwoParts = false>(ColumnGrid grid) {
    const auto term = [&]<Mask kThis, bool kBoth>(const Tensor& gradient) {
      return term_of<T, kPack, kThis, kDeviation, kBoth>(x, y, gradient, more_dy, saved.signs,
                                                         c.slope);
    };
    if (sums) {
      launch_sums(gpu, c, c.view.each(), term.template operator()<kMask, kTwoParts>(dy), relu_dy, n,
                  through_statistics);
    }
    if (!gradients.dx) return;
    if (over_ranks) {
      sum_over_ranks(context, c.view, DType::f32, workspace);
      const auto blocks = static_cast<unsigned>(ceil_div(c.view.channels, 128));
      launch(gpu, finish_over_ranks, {blocks, 128}, c.view.channels, n,
             kDeviation == Deviation::from_y);
    }
    grid.from_end = !sums;
    ChannelParams last = n;
    if (!through_statistics) last.x_factor = last.constant = nullptr;
    if (relu_dy) {
      launch_result(gpu, grid, term.template operator()<Mask::none, false>(relu_dy), gradients.dx,
                    last);
    } else if constexpr (!kTwoParts) {
      launch_result(gpu, grid, term.template operator()<kMask, false>(dy), gradients.dx, last);
    }
  };
  with_grid(
      c.view, dy,
      [&]<typename T, int kPack>(const ColumnGrid& grid) {
        require_packs<T, kPack>(saved.signs);
        if constexpr (kPack == kPackCount<T>) {
          if (saved.signs && more_dy)
            return run.template operator()<T, kPack, Mask::from_signs, Deviation::from_x, true>(
                grid);
          if (saved.signs)
            return run.template operator()<T, kPack, Mask::from_signs, Deviation::from_x>(grid);
          if (more_dy && c.relu && !c.added)
            return run.template operator()<T, kPack, Mask::from_x, Deviation::from_x, true>(grid);
          if (c.gelu)
            return run.template operator()<T, kPack, Mask::gelu_from_x, Deviation::from_x>(grid);
        }
        require(!more_dy, "batch normalization was given two parts of a gradient it takes whole");
        if (from_y && !through_statistics) {
          run.template operator()<T, kPack, Mask::none, Deviation::zero>(grid);
        } else if (from_y) {
          run.template operator()<T, kPack, Mask::none, Deviation::from_y>(grid);
        } else if (!c.relu) {
          run.template operator()<T, kPack, Mask::none, Deviation::from_x>(grid);
        } else if (c.added) {
          run.template operator()<T, kPack, Mask::from_y, Deviation::from_x>(grid);
        } else {
          run.template operator()<T, kPack, Mask::from_x, Deviation::from_x>(grid);
        }
      },
      x, y, more_dy, gradients.dx, gradients.d_added);
  return nullptr;
}

REGISTER_KERNEL(batch_norm_backward_kernels, "channels_last", RunsOn::gpu, 10,
                batch_norm_backward_gpu);

}  // namespace
}  // namespace crema
