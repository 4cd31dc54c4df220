// LabelsequenceAccuracy (forks): the share of sequences decoded entirely correctly.
//   y = 1 / N * number of n with decode(x[n]) = labels[n]
//   decode takes the best class of each step, merges repeats and drops blanks
// Shapes: scores x (N, T, C), labels (N, L), where blanks do not count; y is a scalar.
// Parameters: none.
// Gradient: none.
#include "kernels/reduce/reduce.h"
#include "kernels/sequence/best_path.h"
#include "layers/layer.h"
#include "proto/params/recurrent.pb.h"

namespace crema {
namespace {

template <typename T>
struct IsRight {
  BestPath path;
  WantedLabels<T> labels;
  int32_t* scratch;  // per sequence: steps + maximum
  T* right;
  CREMA_HD void operator()(int64_t n) const {
    int32_t* read = scratch + n * (path.steps + labels.maximum);
    int32_t* wanted = read + path.steps;
    const int32_t count = path.read(n, path.steps, read);
    bool same = count == labels.read(n, wanted);
    for (int32_t j = 0; same && j < count; ++j) same = read[j] == wanted[j];
    right[n] = T(same);
  }
};

template <typename T>
struct Right {
  const T* right;
  template <typename>
  CREMA_HD T operator()(int64_t, int64_t, int64_t n) const {
    return right[n];
  }
};

class LabelsequenceAccuracyLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::metric};

 private:
  Arity bottoms() const override { return {2, 2}; }
  bool differentiable(int) const override { return false; }
  LayerTraits traits() const override { return {.reads = {false, false}}; }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape &x = bottoms[0], &labels = bottoms[1];
    require(x.axes() >= 3, "the scores must have the axes sequences, steps and classes, but their ",
            "shape is ", x.brief());
    require(labels.axes() >= 1 && labels[0] == x[0], "the labels must have the shape sequences x ",
            "labels with ", x[0], " sequences as the scores (", x.brief(), "), but it is ",
            labels.brief());
    return {{Shape()}, {}};
  }

  // Workspace: whether correct, best classes, scratch.
  Prepared prepare(Context&, const Preparation& preparation) const override {
    const Shape &x = preparation.bottoms[0], &labels = preparation.bottoms[1];
    const auto numbers = static_cast<size_t>(2 * x[0] * x[1] + labels.count());
    Prepared prepared;
    prepared.workspace =
        static_cast<size_t>(x[0]) * size_of(preparation.dtype) + numbers * sizeof(int32_t);
    return prepared;
  }

  void forward(Context& context, const Forward& pass) const override {
    const Tensor &x = pass.bottom[0], &labels = pass.bottom[1];
    const int64_t sequences = x.shape()[0], steps = x.shape()[1];
    const int64_t blank = params<LabelsequenceAccuracyParameter>().blank_label();
    on(x, [&]<typename T>() {
      T* right = pass.workspace.data<T>();
      auto* best = reinterpret_cast<int32_t*>(right + sequences);
      best_classes<T>(context, x, x.shape().count(2), best);
      const BestPath path{steps, sequences, 1, steps, blank, true, best};
      const WantedLabels<T> wanted{labels.data<T>(), labels.shape().count(1), blank, false};
      parallel_for(context, sequences, IsRight<T>{path, wanted, best + sequences * steps, right},
                   16);
      parallel_sum<T>(context, {1, 1, sequences}, Right<T>{right},
                      {pass.top[0].data<T>(), T(1) / static_cast<T>(sequences)});
    });
  }
};

}  // namespace
REGISTER_LAYER(LabelsequenceAccuracy, LabelsequenceAccuracyLayer);
}  // namespace crema
