#include "kernels/softmax/softmax_shares_loss.h"

#include "base/error.h"
#include "kernels/labels/labels.h"
#include "kernels/pointwise/pointwise.h"
#include "kernels/pointwise/pointwise_math.h"
#include "kernels/reduce/reduce.h"
#include "kernels/softmax/softmax_labels.h"

namespace crema {
namespace {

template <typename C>
CREMA_HD bool is_share(C share) {
  return share >= 0 && share <= C(1.001);  // NaN is not; a little more for rounding
}

// T: the type of x; all else is of its type for computing.
template <typename T>
struct ClassShares {
  using C = Compute<T>;
  SoftmaxView view;
  const T* x;
  const C *shares, *class_weights, *position_weights;
  C smoothing;
  C *largest, *inverse, *losses, *sums;  // of each position
  LabelNote note;

  ClassShares(const SoftmaxLossCase& c, const Tensor& x, const Tensor& shares,
              const SoftmaxLossSaved& saved)
      : view(c.view),
        x(x.data<T>()),
        shares(shares.data<C>()),
        class_weights(c.class_weights.data<C>()),
        position_weights(c.position_weights.data<C>()),
        smoothing(static_cast<C>(c.smoothing)),
        largest(saved.positions.data<C>()),
        inverse(largest + view.positions()),
        losses(inverse + view.positions()),
        sums(losses + view.positions()),
        note{saved.note.data<int32_t>(), view.classes, c.positions_each() * view.classes, c.pass,
             c.live_pass} {}

  SumExtent extent() const {
    return view.inner == 1 ? SumExtent{view.positions(), 1, view.classes}
                           : SumExtent{view.positions(), view.classes, 1};
  }
  CREMA_HD int64_t at(int64_t position, int64_t k) const {
    return (position / view.inner * view.classes + k) * view.inner + position % view.inner;
  }
  CREMA_HD C weighted(int64_t i, int64_t k) const {
    return shares[i] * (class_weights ? class_weights[k] : C(1));
  }
  CREMA_HD C weight(int64_t position) const {
    return position_weights ? position_weights[position] : C(1);
  }
  CREMA_HD C target(int64_t position, int64_t i, int64_t k) const {
    return (1 - smoothing) * weighted(i, k) + smoothing * sums[position] / view.classes;
  }
};

template <typename T>
struct WeightedShare {
  ClassShares<T> of;
  template <typename C>
  CREMA_HD C operator()(int64_t position, int64_t row, int64_t column) const {
    const int64_t k = row + column, i = of.at(position, k);
    const bool good = is_share(of.shares[i]);
    if (!good) of.note.write(i, of.shares[i]);
    return good ? of.weighted(i, k) : static_cast<C>(NAN);
  }
};

template <typename T>
struct ShareLoss {
  ClassShares<T> of;
  template <typename C>
  CREMA_HD C operator()(int64_t position, int64_t row, int64_t column) const {
    const int64_t k = row + column, i = of.at(position, k);
    const C target = of.target(position, i, k) * of.weight(position);
    const C loss = of.largest[position] - static_cast<C>(of.x[i]) - log(of.inverse[position]);
    return target == 0 ? C(0) : target * limited_loss(loss);
  }
};

// Sum 0 is the loss, sum 1 what VALID counts: positions, or their weights if there are any.
template <typename T>
struct ShareTotals {
  ClassShares<T> of;
  template <typename C>
  CREMA_HD C operator()(int64_t sum, int64_t, int64_t position) const {
    if (sum == 0) return of.losses[position];
    return of.position_weights ? of.weight(position) * of.sums[position] : C(1);
  }
};

template <typename C>
struct DividedTotal {
  double fixed;  // the normalizer, or 0 for what VALID counts
  C *normalizer, *loss;
  CREMA_HD void operator()(int64_t, const double* sums) const {
    const double counted = sums[1] < 1 ? 1 : sums[1], divisor = fixed > 0 ? fixed : counted;
    normalizer[0] = static_cast<C>(divisor);
    normalizer[1] = static_cast<C>(sums[1]);
    *loss = static_cast<C>(sums[0] / divisor);
  }
};

template <typename T>
struct ShareGradient {
  using C = Compute<T>;
  ClassShares<T> of;
  const C *normalizer, *d_loss;
  T* dx;
  // row: an image's class.
  CREMA_HD void operator()(int64_t row, int64_t column) const {
    const int64_t i = row * of.view.inner + column, k = row % of.view.classes,
                  position = row / of.view.classes * of.view.inner + column;
    const C p = exp_of(static_cast<C>(of.x[i]) - of.largest[position]) * of.inverse[position];
    const C scale = of.weight(position) * d_loss[0] / normalizer[0];
    dx[i] = static_cast<T>(scale * (p * of.sums[position] - of.target(position, i, k)));
  }
};

template <typename T>
void check_shares(const SoftmaxLossCase& c, const Tensor& shares) {
  const T* const share = shares.data<T>();
  for (int64_t i = 0; i < shares.count(); ++i) {
    if (!is_share(share[i])) fail_for_share(c, i, static_cast<double>(share[i]));
  }
}

}  // namespace

void fail_for_share(const SoftmaxLossCase& c, int64_t at, double share, const std::string& when) {
  const SoftmaxView& view = c.view;
  const int64_t position = at / view.classes / view.inner * view.inner + at % view.inner,
                each = c.positions_each();
  fail(
      "the share ", share, " of class ", at / view.inner % view.classes, " in image ",
      position / each, " of the batch", when,
      each > 1 ? cat(", position ", position % each, ",") : "",
      " is not from 0 to 1: labels with a value for each score are shares of the classes, as mixup "
      "makes them");
}

void softmax_shares_loss_forward(Context& context, const SoftmaxLossCase& c, const Tensor& x,
                                 const Tensor& shares, const Tensor& loss,
                                 const SoftmaxLossSaved& saved) {
  on_real(x, [&]<typename T>() {
    using C = Compute<T>;
    if (context.device() == Device::cpu) check_shares<C>(c, shares);
    const ClassShares<T> of(c, x, shares, saved);
    parallel_sum<C>(context, of.extent(), WeightedShare<T>{of}, {of.sums});
    parallel_sum<C>(context, of.extent(), ShareLoss<T>{of}, {of.losses});
    parallel_totals<C, 2>(context, 1, c.view.positions(), ShareTotals<T>{of},
                          DividedTotal<C>{c.divide_by_valid ? 0.0 : c.normalizer,
                                          saved.normalizer.data<C>(), loss.data<C>()});
  });
}

void softmax_shares_loss_backward(Context& context, const SoftmaxLossCase& c, const Tensor& x,
                                  const Tensor& shares, const SoftmaxLossSaved& saved,
                                  const Tensor& d_loss, const Tensor& dx) {
  on_real(x, [&]<typename T>() {
    using C = Compute<T>;
    const ShareGradient<T> gradient{ClassShares<T>(c, x, shares, saved), saved.normalizer.data<C>(),
                                    d_loss.data<C>(), dx.data<T>()};
    parallel_rows(context, c.view.outer * c.view.classes, c.view.inner, gradient);
  });
}

}  // namespace crema
