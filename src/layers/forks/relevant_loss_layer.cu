// RelevantLoss (a fork for faces): the error of the relative positions of landmarks.
//   loss = 1 / (2N) * sum over the pairs i < j of ((a_i - a_j) - (b_i - b_j))^2
// in each sample over the pairs of its first half, the columns, and over those of its second half,
// the rows of the landmarks.
// Shapes: a and b (N, 2K, ...) for K landmarks; the loss is a scalar.
// Parameters: none.
// Gradient: da_i = 1 / N * sum over j of (a_i - a_j) - (b_i - b_j), db = -da, times the loss
// weight. (The fork accumulates the sums over all iterations.)
#include "device/parallel.h"
#include "kernels/core/reduce.h"
#include "layers/layer.h"
#include "tensor/on.h"

namespace crema {
namespace {

template <typename T>
struct Relations {
  const T *a, *b;
  int64_t half;  // values of one coordinate of a sample, which are contiguous
  CREMA_HD T off(int64_t i) const { return a[i] - b[i]; }
  // The slope of value i relative to the others of its half.
  CREMA_HD T slope(int64_t i) const {
    const int64_t first = i / half * half;
    T sum = 0;
    for (int64_t j = first; j < first + half; ++j) sum += off(i) - off(j);
    return sum;
  }
  // Each pair is counted from both sides.
  template <typename>
  CREMA_HD T operator()(int64_t, int64_t, int64_t i) const {
    const int64_t first = i / half * half;
    T sum = 0;
    for (int64_t j = first; j < first + half; ++j) sum += (off(i) - off(j)) * (off(i) - off(j));
    return sum / 2;
  }
};

template <typename T>
struct RelationSlopes {
  Relations<T> relations;
  const T* weight;  // of the loss
  T share;
  T *da, *db;  // null: not needed
  CREMA_HD void operator()(int64_t i) const {
    const T slope = *weight * share * relations.slope(i);
    if (da) da[i] = slope;
    if (db) db[i] = -slope;
  }
};

class RelevantLossLayer : public Layer {
  Arity bottoms() const override { return {2, 2}; }
  bool is_loss() const override { return true; }
  BackwardReads reads() const override { return {true, false}; }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape &a = bottoms[0], &b = bottoms[1];
    require(a.axes() >= 2 && b.axes() >= 2 && a[0] == b[0] && a.count() == b.count(),
            "both bottoms must have the same batch and as many values, but they are ", a.brief(),
            " and ", b.brief());
    require(a.count(1) % 2 == 0, "a sample of ", a.brief(), " has ", a.count(1),
            " values, but must have as many columns of landmarks as rows");
    return {{Shape()}, {}};
  }

  template <typename T>
  static Relations<T> relations(const std::vector<Tensor>& bottom) {
    return {bottom[0].data<T>(), bottom[1].data<T>(), bottom[0].shape().count(1) / 2};
  }

  void forward(Context& context, const Forward& pass) override {
    const Tensor& a = pass.bottom[0];
    on(a, [&]<typename T>() {
      parallel_sum<T>(context, {1, 1, a.count()}, relations<T>(pass.bottom),
                      {pass.top[0].data<T>(), T(1) / (2 * static_cast<T>(a.shape()[0]))});
    });
  }

  void backward(Context& context, const Backward& pass) override {
    const Tensor& a = pass.bottom[0];
    on(a, [&]<typename T>() {
      parallel_for(context, a.count(),
                   RelationSlopes<T>{relations<T>(pass.bottom), pass.top_diff[0].data<T>(),
                                     T(1) / static_cast<T>(a.shape()[0]),
                                     pass.bottom_diff[0].data<T>(), pass.bottom_diff[1].data<T>()});
    });
  }
};

}  // namespace
REGISTER_LAYER(RelevantLoss, RelevantLossLayer);
}  // namespace crema
