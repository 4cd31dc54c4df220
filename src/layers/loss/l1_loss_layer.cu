// L1Loss (forks): the mean absolute difference of two blobs.
//   loss = 1 / D * sum of |d|    d = a - b, or a if there is one bottom; D the batch size
// MAE (a fork): the same of two blobs, with the extent of axis 1 as D. From FlowNet's fork: with
// normalize_by_num_entries D is the number of known positions; l2_per_location takes the length of
// d over the channels of each position, sqrt(sum of d^2 + epsilon), the sum divided by C with
// l2_prescale_by_channels. A d below plateau counts as 0, as does a sum below plateau^2. Where b or
// the only bottom is NaN, the value is unknown and counts as d = 0.
// Shapes: a and b (N, C, ...), equal; the loss is a scalar.
// Parameters: none.
// Gradient: da = sign(d) / D, with l2_per_location d / (length * D); 0 below the plateau; db = -da;
// times the loss weight.
#include "layers/loss/pair_loss.h"

namespace crema {
namespace {

// A row is a channel of an image, a column a position.
template <typename T>
struct Difference {
  const T *a, *b;  // b: or null
  int64_t channels, inner;
  bool lengths;               // else absolute values
  T epsilon, plateau, share;  // share: of the sum of squares

  CREMA_HD bool known(int64_t i) const { return b ? b[i] == b[i] : a[i] == a[i]; }
  CREMA_HD T at(int64_t i) const { return !known(i) ? T(0) : b ? a[i] - b[i] : a[i]; }
  CREMA_HD T squares(int64_t image, int64_t position) const {
    T sum = 0;
    for (int64_t c = 0; c < channels; ++c) {
      const T d = at((image * channels + c) * inner + position);
      sum += d * d;
    }
    return share * sum;
  }
  CREMA_HD T length(T squares) const {
    return sqrt(epsilon + (squares < plateau * plateau ? T(0) : squares));
  }
  CREMA_HD T loss(int64_t row, int64_t position) const {
    const T d = at(row * inner + position);
    const T size = d < 0 ? -d : d;
    if (!lengths) return size < plateau ? T(0) : size;
    return row % channels == 0 ? length(squares(row / channels, position)) : T(0);
  }
  CREMA_HD T counted(int64_t row, int64_t position) const {
    return known(row * inner + position) ? T(1) / static_cast<T>(channels) : T(0);
  }
  CREMA_HD T slope(int64_t row, int64_t position) const {
    const T d = at(row * inner + position);
    if (lengths) {
      const T sum = squares(row / channels, position);
      return sum < plateau * plateau ? T(0) : share * d / length(sum);
    }
    return d > 0 && d >= plateau ? T(1) : d < 0 && -d >= plateau ? T(-1) : T(0);
  }
  CREMA_HD T gradient(int64_t row, int64_t position, const LossScale<T>& scale) const {
    return slope(row, position) * scale.value();
  }
};

class L1LossLayer : public PairLoss<L1LossLayer> {
 public:
  explicit L1LossLayer(bool mae = false) : mae_(mae) {}
  Arity bottoms() const override { return {mae_ ? 2 : 1, 2}; }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape& a = require_like_batches(bottoms);
    require(!mae_ || a.axes() > 1, "MAE divides by the extent of axis 1, but the first bottom is ",
            a.brief(), "; a Reshape before it can give it that axis");
    require(p().epsilon() > 0 || !p().l2_per_location(), "epsilon is ", p().epsilon(),
            ", but must be positive: the length has no gradient at zero");
    return {{Shape()}, {loss_sums()}};
  }
  SumExtent extent(const Shape& a) const {
    const int spatial = a.axes() > 1 ? 2 : 1;
    return {1, a.count(0, spatial), a.count(spatial)};
  }
  LossNormalizer normalizer(const Shape& a) const {
    return {p().normalize_by_num_entries(), static_cast<double>(a[mae_ ? 1 : 0]), !mae_};
  }
  template <typename T>
  Difference<T> terms(const LossInput& in) const {
    const Shape& a = in.bottom[0].shape();
    const int64_t channels = a.axes() > 1 ? a[1] : 1;
    const T share = p().l2_prescale_by_channels() ? T(1) / static_cast<T>(channels) : T(1);
    return {in.at<T>(0),
            in.at<T>(1),
            channels,
            extent(a).columns,
            p().l2_per_location(),
            static_cast<T>(p().epsilon()),
            static_cast<T>(p().plateau()),
            share};
  }

 private:
  const L1LossParameter& p() const { return params<L1LossParameter>(); }
  const bool mae_;  // MAE
};

}  // namespace
REGISTER_LAYER(L1Loss, L1LossLayer);
REGISTER_LAYER(MAE, L1LossLayer, true);
}  // namespace crema
