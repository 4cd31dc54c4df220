// RelevantLoss (a fork for faces): the error of the relative positions of landmarks.
//   loss = 1 / (2N) * sum over the pairs i < j of ((a_i - a_j) - (b_i - b_j))^2
// in each sample over the pairs of its first half, the columns, and over those of its second half,
// the rows of the landmarks.
// Shapes: a and b (N, 2K, ...) for K landmarks; the loss is a scalar.
// Parameters: none.
// Gradient: da_i = 1 / N * sum over j of (a_i - a_j) - (b_i - b_j), db = -da, times the loss
// weight. (The fork accumulates the sums over all iterations.)
#include "layers/loss/pair_loss.h"

namespace crema {
namespace {

template <typename T>
struct Relations {
  const T *a, *b;
  int64_t half;  // values of one coordinate of a sample, which are contiguous
  CREMA_HD T off(int64_t i) const { return a[i] - b[i]; }
  // Each pair is counted from both sides.
  CREMA_HD T loss(int64_t, int64_t i) const {
    const int64_t first = i / half * half;
    T sum = 0;
    for (int64_t j = first; j < first + half; ++j) sum += (off(i) - off(j)) * (off(i) - off(j));
    return sum / 2;
  }
  CREMA_HD T gradient(int64_t i, const LossScale<T>& scale) const {
    const int64_t first = i / half * half;
    T sum = 0;
    for (int64_t j = first; j < first + half; ++j) sum += off(i) - off(j);
    return scale.value() * sum;
  }
};

class RelevantLossLayer : public PairLoss<RelevantLossLayer> {
 public:
  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape& a = require_like_batches(bottoms, 2);
    require(a.count(1) % 2 == 0, "a sample of ", a.brief(), " has ", a.count(1),
            " values, but must have as many columns of landmarks as rows");
    return {{Shape()}, {}};
  }
  double factor() const { return 0.5; }
  template <typename T>
  Relations<T> terms(const LossInput& in) const {
    return {in.at<T>(0), in.at<T>(1), in.bottom[0].shape().count(1) / 2};
  }
};

}  // namespace
REGISTER_LAYER(RelevantLoss, RelevantLossLayer);
}  // namespace crema
