// Batch normalization: the passes over the data are those of kernels/pointwise/channel.h; between them
// there is work on a few values per channel. Two passes forward (statistics, result) and two
// backward (sums, result).
#include "kernels/norm/batch_norm.h"

#include "device/parallel.h"
#include "kernels/norm/batch_norm_kernels.h"
#include "kernels/norm/batch_norm_ranks.h"
#include "tensor/on.h"
#include "tensor/part.h"

namespace crema {
namespace {

// The workspace: values for each channel, what ranks exchange, the workspace of channel_sums().
struct Workspace {
  Tensor factor, shift, pivot, x_factor, constant;
  double* sums;
  void* scratch;

  Workspace(const Context& context, const BatchNormCase& c, DType dtype, const Tensor& memory) {
    char* at = static_cast<char*>(memory.raw());
    const int64_t channels = c.view.channels;
    sums = reinterpret_cast<double*>(at);
    at += 2 * channels * sizeof(double);
    for (Tensor* tensor : {&factor, &shift, &pivot, &x_factor, &constant}) {
      const size_t offset_bytes = static_cast<size_t>(at - static_cast<char*>(memory.raw()));
      *tensor = part_of(memory, offset_bytes, Shape{channels}, dtype);
      at += channels * sizeof(double);
    }
    if (c.over_ranks) at += ranks_bytes(context, c.view);
    scratch = at;
  }
  static size_t bytes(Context& context, const ChannelView& view, bool over_ranks) {
    return kChannelDoubles * view.channels * sizeof(double) +
           (over_ranks ? ranks_bytes(context, view) : 0) + channel_sums_scratch(context, view);
  }
};

// A value near each channel's mean: the mean of some elements spread over the channel. Sums of
// differences from it suffer no cancellation.
template <typename T>
struct Pivot {
  ChannelView view;
  const T* x;
  T* pivot;
  CREMA_HD void operator()(int64_t c) const {
    const int64_t count = view.each() < 16 ? view.each() : 16, step = view.each() / count;
    T sum = 0;
    for (int64_t k = 0; k < count; ++k) {
      const int64_t i = k * step;
      sum += view.inner == 1
                 ? x[i * view.channels + c]
                 : x[(i / view.inner * view.channels + c) * view.inner + i % view.inner];
    }
    pivot[c] = sum / static_cast<T>(count);
  }
};

// Computes the batch's statistics from the sums, and updates the stored ones. own: with ranks,
// where those of this rank's elements are left instead.
template <typename T>
struct BatchStatistics {
  const double* sums;
  const T* pivot;
  int64_t channels, each;
  StoredStatistics<T> stored;
  T *mean, *inverse;
  RankValues<T> own;
  CREMA_HD void operator()(int64_t c) const {
    const auto count = static_cast<double>(each);
    const batch_norm::Moments from_pivot =
        batch_norm::moments_of(sums[c], sums[channels + c], count);
    if (own.values)
      return own.write(c, pivot[c] + from_pivot.mean, from_pivot.variance * count, count);
    mean[c] = pivot[c] + static_cast<T>(from_pivot.mean);
    inverse[c] = static_cast<T>(1 / sqrt(from_pivot.variance + stored.eps));
    stored.add(c, mean[c], from_pivot.variance, count);
  }
};

template <typename T>
struct TakeStored {
  StoredStatistics<T> stored;
  T *mean, *inverse;
  CREMA_HD void operator()(int64_t c) const { stored.take(c, mean, inverse); }
};

template <typename T>
struct FactorAndShift {
  const T *inverse, *scale, *shift;
  T *factor, *shift_out;
  CREMA_HD void operator()(int64_t c) const {
    factor[c] = batch_norm::factor_of(inverse[c], scale, c);
    shift_out[c] = shift ? shift[c] : T(0);
  }
};

// The sums of this rank, from which with those of the others come the sums of all.
template <typename T>
struct OwnSums {
  const double* sums;
  int64_t channels, each;
  RankValues<T> own;
  CREMA_HD void operator()(int64_t c) const { own.write(c, sums[c], sums[channels + c], each); }
};

// of_all: with ranks, the sums of all ranks' elements, while the gradients of scale and shift are
// this rank's.
template <typename T>
struct GradientParams {
  const double* sums;
  const T *inverse, *factor;
  int64_t channels, each;
  bool h_is_y;
  T *x_factor, *constant;
  batch_norm::LearnedGradients<T> learned;
  RankValues<T> of_all;
  CREMA_HD void operator()(int64_t c) const {
    const double sum_g = of_all.values ? of_all.first(c) : sums[c];
    const double sum_gh = of_all.values ? of_all.second(c) : sums[channels + c];
    const double count = of_all.values ? of_all.each() : each;
    const auto terms =
        batch_norm::gradient_terms(factor[c], inverse[c], sum_g, sum_gh, count, h_is_y);
    x_factor[c] = terms.x_factor;
    constant[c] = terms.constant;
    learned.write(c, inverse[c], sums[c], sums[channels + c]);
  }
};

template <typename T>
void find_statistics(Context& context, const BatchNormCase& c, const BatchNormParameters& p,
                     const Tensor& x, const BatchNormSaved& saved, const Tensor& workspace) {
  const Workspace w(context, c, x.dtype(), workspace);
  const StoredStatistics<T> stored(c, p);
  T *const mean = saved.mean.data<T>(), *const inverse = saved.inverse.data<T>();
  if (!c.batch_statistics) {
    parallel_for(context, c.view.channels, TakeStored<T>{stored, mean, inverse});
    return;
  }
  const RankValues<T> own =
      c.over_ranks ? own_statistics<T>(context, c.view, workspace) : RankValues<T>();
  parallel_for(context, c.view.channels, Pivot<T>{c.view, x.data<T>(), w.pivot.data<T>()});
  channel_statistics(context, c.view, x, w.pivot, w.sums, w.scratch);
  parallel_for(context, c.view.channels,
               BatchStatistics<T>{w.sums, w.pivot.data<T>(), c.view.channels, c.view.each(), stored,
                                  mean, inverse, own});
  if (c.over_ranks) merge_statistics(context, c, p, saved, workspace);
}

template <typename T>
void fold(Context& context, const BatchNormCase& c, const BatchNormParameters& p,
          const Tensor& inverse, const Workspace& w) {
  parallel_for(context, c.view.channels,
               FactorAndShift<T>{inverse.data<T>(), p.scale.data<T>(), p.shift.data<T>(),
                                 w.factor.data<T>(), w.shift.data<T>()});
}

void apply(Context& context, const BatchNormCase& c, const BatchNormParameters& parameters,
           const Tensor& x, const Tensor& added, const Tensor& y, const BatchNormSaved& saved,
           const Tensor& workspace) {
  const Workspace w(context, c, x.dtype(), workspace);
  on(x, [&]<typename T>() { fold<T>(context, c, parameters, saved.inverse, w); });
  channel_affine(context, c.view, {saved.mean, w.factor, w.shift, added, c.relu, c.slope}, x, y);
}

constexpr Refusal kNoHalf = "in 32 and 64 bits only";

Refusal batch_norm_forward_plain(Context& context, const BatchNormCase& c,
                                 const BatchNormParameters& parameters, const Tensor& x,
                                 const Tensor& added, const Tensor& /*sums*/, const Tensor& y,
                                 const BatchNormSaved& saved, const Tensor& workspace) {
  if (is_half(x.dtype())) return kNoHalf;
  if (c.gelu) return "it has no GELU";
  on(x, [&]<typename T>() { find_statistics<T>(context, c, parameters, x, saved, workspace); });
  apply(context, c, parameters, x, added, y, saved, workspace);
  return nullptr;
}

Refusal batch_norm_recompute_plain(Context& context, const BatchNormCase& c,
                                   const BatchNormParameters& parameters, const Tensor& x,
                                   const Tensor& added, const Tensor& y,
                                   const BatchNormSaved& saved, const Tensor& workspace) {
  if (is_half(x.dtype())) return kNoHalf;
  if (c.gelu) return "it has no GELU";
  apply(context, c, parameters, x, added, y, saved, workspace);
  return nullptr;
}

Refusal batch_norm_backward_plain(Context& context, const BatchNormCase& c,
                                  const BatchNormParameters& parameters, const Tensor& x,
                                  const Tensor& y, const Tensor& dy, const Tensor& more_dy,
                                  const BatchNormSaved& saved, const BatchNormGradients& gradients,
                                  const Tensor& workspace) {
  if (is_half(dy.dtype())) return kNoHalf;
  if (c.gelu) return "it has no GELU";
  if (more_dy) return "the gradient in one part only";
  const Workspace w(context, c, dy.dtype(), workspace);
  const bool h_is_y = !c.added && !c.relu && !parameters.scale && !parameters.shift;
  on(dy, [&]<typename T>() { fold<T>(context, c, parameters, saved.inverse, w); });

  ChannelTerm gradient;
  gradient.dy = dy;
  gradient.factor = w.factor;
  gradient.shift = w.shift;
  gradient.slope = c.slope;
  if (h_is_y) {
    gradient.x = y;
  } else {
    gradient.x = x;
    gradient.center = saved.mean;
    if (c.relu) gradient.mask = c.added ? ChannelTerm::Mask::from_y : ChannelTerm::Mask::from_x;
    gradient.y = y;
  }
  const bool through_statistics = c.batch_statistics && gradients.dx;
  if (through_statistics || gradients.d_scale || gradients.d_shift || gradients.d_added) {
    channel_sums(context, c.view, gradient, c.relu ? gradients.d_added : Tensor(), w.sums,
                 w.scratch);
    if (gradients.d_added && !c.relu && gradients.d_added.raw() != dy.raw())
      copy(context, dy, gradients.d_added);
    on(dy, [&]<typename T>() {
      const int64_t channels = c.view.channels;
      RankValues<T> of_all;
      if (c.over_ranks && through_statistics) {
        of_all = rank_sums<T>(c.view, workspace);
        parallel_for(context, channels, OwnSums<T>{w.sums, channels, c.view.each(), of_all});
        sum_over_ranks(context, c.view, dy.dtype(), workspace);
      }
      parallel_for(
          context, channels,
          GradientParams<T>{w.sums, saved.inverse.data<T>(), w.factor.data<T>(), channels,
                            c.view.each(), h_is_y, w.x_factor.data<T>(), w.constant.data<T>(),
                            learned_gradients<T>(gradients), of_all});
    });
  }
  if (!gradients.dx) return nullptr;
  if (gradients.d_added) {  // already holds g
    gradient.dy = gradients.d_added;
    gradient.mask = ChannelTerm::Mask::none;
  }
  if (!c.batch_statistics && gradient.mask == ChannelTerm::Mask::none) gradient.x = {};
  channel_gradient(context, c.view, gradient, through_statistics ? w.x_factor : Tensor(),
                   through_statistics ? w.constant : Tensor(), gradients.dx);
  return nullptr;
}

REGISTER_KERNEL(batch_norm_forward_kernels, "plain", RunsOn::both, 0, batch_norm_forward_plain);
REGISTER_KERNEL(batch_norm_recompute_kernels, "plain", RunsOn::both, 0, batch_norm_recompute_plain);
REGISTER_KERNEL(batch_norm_backward_kernels, "plain", RunsOn::both, 0, batch_norm_backward_plain);

}  // namespace

constinit decltype(batch_norm_forward_kernels) batch_norm_forward_kernels("batch normalization");
constinit decltype(batch_norm_affine_kernels) batch_norm_affine_kernels(
    "batch normalization without its top", "for 16 bits on a GPU; compared with the whole");
constinit decltype(batch_norm_recompute_kernels) batch_norm_recompute_kernels(
    "the recomputation of batch normalization");
constinit decltype(batch_norm_backward_kernels) batch_norm_backward_kernels(
    "the gradient of batch normalization");

bool batch_norm_in_rows(const BatchNormCase& c, DType dtype) {
  return c.view.groups == 1 && (c.view.inner == 1 || c.view.channels == 1) && dtype != DType::f64;
}

bool batch_norm_takes_packs(const Context& context, const BatchNormCase& c, DType dtype) {
  return context.device() == Device::gpu && !wants_reference(context) &&
         batch_norm_in_rows(c, dtype) &&
         c.view.channels * static_cast<int64_t>(size_of(dtype)) % 16 == 0;
}

size_t batch_norm_workspace(Context& context, const ChannelView& view, bool over_ranks) {
  // More than the GPU's own implementation needs.
  return Workspace::bytes(context, view, over_ranks);
}

void batch_norm_forward(Context& context, const BatchNormCase& c,
                        const BatchNormParameters& parameters, const Tensor& x, const Tensor& added,
                        const Tensor& sums, const Tensor& y, const BatchNormSaved& saved,
                        const Tensor& workspace) {
  if (x.count() > 0)
    batch_norm_forward_kernels.run(context, c, parameters, x, added, sums, y, saved, workspace);
}

void batch_norm_affine(Context& context, const BatchNormCase& c,
                       const BatchNormParameters& parameters, const Tensor& x, const Tensor& sums,
                       const Tensor& affine, const BatchNormSaved& saved, const Tensor& workspace) {
  batch_norm_affine_kernels.run(context, c, parameters, x, sums, affine, saved, workspace);
}

void batch_norm_recompute(Context& context, const BatchNormCase& c,
                          const BatchNormParameters& parameters, const Tensor& x,
                          const Tensor& added, const Tensor& y, const BatchNormSaved& saved,
                          const Tensor& workspace) {
  if (x.count() > 0)
    batch_norm_recompute_kernels.run(context, c, parameters, x, added, y, saved, workspace);
}

void batch_norm_backward(Context& context, const BatchNormCase& c,
                         const BatchNormParameters& parameters, const Tensor& x, const Tensor& y,
                         const Tensor& dy, const Tensor& more_dy, const BatchNormSaved& saved,
                         const BatchNormGradients& gradients, const Tensor& workspace) {
  if (dy.count() > 0) {
    return batch_norm_backward_kernels.run(context, c, parameters, x, y, dy, more_dy, saved,
                                           gradients, workspace);
  }
  if (gradients.d_scale && !gradients.accumulate_scale) zero(context, gradients.d_scale);
  if (gradients.d_shift && !gradients.accumulate_shift) zero(context, gradients.d_shift);
}

}  // namespace crema
