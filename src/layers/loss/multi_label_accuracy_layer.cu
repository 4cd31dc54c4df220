// MultiLabelAccuracy (forks): accuracy of independent yes-or-no predictions, where x >= 0 is a yes.
//   y = (sensitivity: share of the yes that are found,
//        specificity: share of the no that are found,
//        harmonic mean of these two,
//        precision: share of the found yes that are a yes,
//        F1: harmonic mean of precision and sensitivity)   each 0 instead of 0 / 0
// Shapes: x and the labels have as many values; labels above 0 are a yes, below 0 a no, and 0 does
// not count; y (1, 5, 1, 1).
// Parameters: none.
// Gradient: none.
#include "kernels/pointwise/pointwise.h"
#include "kernels/reduce/reduce.h"
#include "layers/layer.h"

namespace crema {
namespace {

// The sums: all yes, all no, the yes that are found, the no that are found.
template <typename T>
struct RightLabels {
  const T *x, *labels;
  template <typename>
  CREMA_HD T operator()(int64_t k, int64_t, int64_t i) const {
    const bool yes = k % 2 == 0, is = yes ? labels[i] > 0 : labels[i] < 0;
    return is && (k < 2 || (x[i] >= 0) == yes) ? T(1) : T(0);
  }
};

template <typename T>
struct RightShares {
  const T* sums;
  T* y;
  CREMA_HD static T share(T part, T whole) { return whole > 0 ? part / whole : T(0); }
  CREMA_HD static T harmonic(T a, T b) { return share(2 * a * b, a + b); }
  CREMA_HD void operator()(int64_t) const {
    const T false_yes = sums[1] - sums[3];
    y[0] = share(sums[2], sums[0]);
    y[1] = share(sums[3], sums[1]);
    y[2] = harmonic(y[0], y[1]);
    y[3] = share(sums[2], sums[2] + false_yes);
    y[4] = harmonic(y[3], y[0]);
  }
};

class MultiLabelAccuracyLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::metric, .labels = LabelKind::answers};

 private:
  Arity bottoms() const override { return {2, 2}; }
  bool differentiable(int) const override { return false; }
  LayerTraits traits() const override { return {.reads = {false, false}}; }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    require(bottoms[0].count() == bottoms[1].count(),
            "there must be one label for each value, but the bottoms are ", bottoms[0].brief(),
            " and ", bottoms[1].brief());
    return {{{1, 5, 1, 1}}, {{{4}, {}}}};
  }

  void forward(Context& context, const Forward& pass) const override {
    const Tensor& x = pass.bottom[0];
    on(x, [&]<typename T>() {
      T* sums = pass.saved[0].data<T>();
      parallel_sum<T>(context, {4, 1, x.count()},
                      RightLabels<T>{x.data<T>(), pass.bottom[1].data<T>()}, {sums});
      parallel_for(context, 1, RightShares<T>{sums, pass.top[0].data<T>()});
    });
  }
};

}  // namespace
REGISTER_LAYER(MultiLabelAccuracy, MultiLabelAccuracyLayer);
}  // namespace crema
