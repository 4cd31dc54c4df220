// L1Loss (forks): the mean absolute difference of two blobs.
//   loss = 1 / D * sum of |d|    d = a - b, or a if there is one bottom; D the batch size
// MAE (a fork): the same of two blobs, with the extent of axis 1 as D. From FlowNet's fork: with
// normalize_by_num_entries D is the number of known positions; l2_per_location takes the length of
// d over the channels of each position, sqrt(sum of d^2 + epsilon). Where b or the only bottom is
// NaN, the value is unknown and counts as d = 0.
// Shapes: a and b (N, C, ...), equal; the loss is a scalar.
// Parameters: none.
// Gradient: da = sign(d) / D, with l2_per_location d / (length * D); db = -da; times the loss
// weight.
#include "kernels/core/pointwise.h"
#include "layers/layer.h"
#include "layers/loss/loss_sum.h"
#include "proto/params/loss.pb.h"

namespace crema {
namespace {

template <typename T>
struct Difference {
  const T *a, *b;  // b: or null
  int64_t channels, inner;
  bool lengths;  // else absolute values
  T epsilon;

  CREMA_HD bool known(int64_t i) const { return b ? b[i] == b[i] : a[i] == a[i]; }
  CREMA_HD T at(int64_t i) const { return !known(i) ? T(0) : b ? a[i] - b[i] : a[i]; }
  CREMA_HD T length(int64_t image, int64_t position) const {
    T sum = epsilon;
    for (int64_t c = 0; c < channels; ++c) {
      const T d = at((image * channels + c) * inner + position);
      sum += d * d;
    }
    return sqrt(sum);
  }
  // A row is a channel of an image, a column a position.
  CREMA_HD T loss(int64_t row, int64_t position) const {
    const T d = at(row * inner + position);
    if (!lengths) return d < 0 ? -d : d;
    return row % channels == 0 ? length(row / channels, position) : T(0);
  }
  CREMA_HD T counted(int64_t row, int64_t position) const {
    return known(row * inner + position) ? T(1) / static_cast<T>(channels) : T(0);
  }
  CREMA_HD T slope(int64_t row, int64_t position) const {
    const T d = at(row * inner + position);
    if (lengths) return d / length(row / channels, position);
    return d > 0 ? T(1) : d < 0 ? T(-1) : T(0);
  }
};

template <typename T>
struct DifferenceGradient {
  Difference<T> difference;
  const T* weight;
  LossDivisor<T> divisor;
  T *da, *db;  // null: not needed
  CREMA_HD void operator()(int64_t row, int64_t position) const {
    const T slope = difference.slope(row, position) * (*weight / divisor.value());
    const int64_t i = row * difference.inner + position;
    if (da) da[i] = slope;
    if (db) db[i] = -slope;
  }
};

class L1LossLayer : public Layer {
 public:
  explicit L1LossLayer(bool mae = false) : mae_(mae) {}

 private:
  const L1LossParameter& p() const { return params<L1LossParameter>(); }
  Arity bottoms() const override { return {mae_ ? 2 : 1, 2}; }
  bool is_loss() const override { return true; }
  BackwardReads reads() const override { return {true, false}; }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape &a = bottoms[0], &b = bottoms.back();
    require(a.axes() > 0 && b.axes() > 0 && a[0] == b[0] && a.count() == b.count(),
            "both bottoms must have the same batch and as many values, but they are ", a.brief(),
            " and ", b.brief());
    require(!mae_ || a.axes() > 1, "MAE divides by the extent of axis 1, but the first bottom is ",
            a.brief(), "; a Reshape before it can give it that axis");
    require(p().epsilon() > 0 || !p().l2_per_location(), "epsilon is ", p().epsilon(),
            ", but must be positive: the length has no gradient at zero");
    return {{Shape()}, {loss_sums()}};
  }

  LossNormalizer normalizer(const Shape& a) const {
    return {p().normalize_by_num_entries(), static_cast<double>(a[mae_ ? 1 : 0])};
  }
  template <typename T>
  Difference<T> difference(const std::vector<Tensor>& bottom) const {
    const Shape& a = bottom[0].shape();
    const int64_t channels = a.axes() > 1 ? a[1] : 1;
    return {bottom[0].data<T>(),
            bottom.size() > 1 ? bottom[1].data<T>() : nullptr,
            channels,
            a.count() / (a[0] * channels),
            p().l2_per_location(),
            static_cast<T>(p().epsilon())};
  }

  void forward(Context& context, const Forward& pass) override {
    const Tensor& a = pass.bottom[0];
    on(a, [&]<typename T>() {
      const Difference<T> terms = difference<T>(pass.bottom);
      sum_loss<T>(context, a.count() / terms.inner, terms.inner, terms, normalizer(a.shape()),
                  pass.saved[0], pass.top[0]);
    });
  }

  void backward(Context& context, const Backward& pass) override {
    const Tensor& a = pass.bottom[0];
    on(a, [&]<typename T>() {
      const DifferenceGradient<T> gradient{
          difference<T>(pass.bottom), pass.top_diff[0].data<T>(),
          divisor_of<T>(normalizer(a.shape()), pass.saved[0]), pass.bottom_diff[0].data<T>(),
          pass.bottom_diff.size() > 1 ? pass.bottom_diff[1].data<T>() : nullptr};
      const int64_t inner = gradient.difference.inner;
      parallel_rows(context, a.count() / inner, inner, gradient);
    });
  }
  const bool mae_;  // MAE
};

}  // namespace
REGISTER_LAYER(L1Loss, L1LossLayer);
REGISTER_LAYER(MAE, L1LossLayer, true);
}  // namespace crema
