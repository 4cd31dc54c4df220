// MultinomialLogisticLoss: cross-entropy of given probabilities, such as those of a Softmax, with
// integer labels. SoftmaxWithLoss computes both more accurately.
//   loss = -1 / N * sum of log(p[n,label])    p is clamped to at least 1e-20, as in Caffe
// Shapes: p (N, K...), labels (N); the loss is a scalar.
// Parameters: none.
// Gradient: dp[n,label] = -1 / (N * p[n,label]), times the loss weight, else 0; none for the
// labels.
#include "kernels/core/labels.h"
#include "kernels/core/pointwise.h"
#include "kernels/core/reduce.h"
#include "layers/layer.h"

namespace crema {
namespace {

template <typename T>
struct LabelledProbability {
  ClassLabels<T> labels;
  const T* p;
  CREMA_HD T at(int64_t image) const {
    const int label = labels.at(image);
    const T value = label < 0 ? T(NAN) : p[image * labels.classes + label], minimum = T(1e-20);
    return value < minimum ? minimum : value;
  }
};

template <typename T>
struct LogTerm {
  LabelledProbability<T> probability;
  LabelNote note;
  template <typename>
  CREMA_HD T operator()(int64_t, int64_t, int64_t image) const {
    if (probability.labels.at(image) < 0) note.write(image, probability.labels.labels[image]);
    return log(probability.at(image));
  }
};

template <typename T>
struct LogGradient {
  LabelledProbability<T> probability;
  const T* weight;
  T share;
  T* dp;
  CREMA_HD void operator()(int64_t image, int64_t k) const {
    const T slope = -share * *weight / probability.at(image);
    dp[image * probability.labels.classes + k] =
        k == probability.labels.at(image) ? slope : T(0) * slope;
  }
};

class MultinomialLogisticLossLayer : public Layer {
  Arity bottoms() const override { return {2, 2}; }
  bool is_loss() const override { return true; }
  bool differentiable(int bottom) const override { return bottom == 0; }
  BackwardReads reads() const override { return {true, false}; }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    require(bottoms[0].axes() > 0 && bottoms[1].count() == bottoms[0][0],
            "there must be one label for each image of the batch, but the probabilities are ",
            bottoms[0].brief(), " and the labels ", bottoms[1].brief());
    return {{Shape()}, {{{LabelNote::kCount}, DType::i32, true}}};
  }

  void forward(Context& context, const Forward& pass) override {
    const Tensor &p = pass.bottom[0], &labels = pass.bottom[1];
    const int64_t images = p.shape()[0], classes = p.shape().count(1);
    check_labels(labels, classes, 1, std::nullopt);
    const LabelNote note{pass.saved[0].data<int32_t>(), classes, 1, pass.pass, pass.live_pass};
    on(p, [&]<typename T>() {
      const LogTerm<T> term{{{labels.data<T>(), classes}, p.data<T>()}, note};
      parallel_sum<T>(context, {1, 1, images}, term,
                      {pass.top[0].data<T>(), T(-1) / static_cast<T>(images)});
    });
  }

  void backward(Context& context, const Backward& pass) override {
    const Tensor &p = pass.bottom[0], &labels = pass.bottom[1];
    const int64_t images = p.shape()[0], classes = p.shape().count(1);
    on(p, [&]<typename T>() {
      const LogGradient<T> gradient{{{labels.data<T>(), classes}, p.data<T>()},
                                    pass.top_diff[0].data<T>(),
                                    T(1) / static_cast<T>(images),
                                    pass.bottom_diff[0].data<T>()};
      parallel_rows(context, images, classes, gradient);
    });
  }

  void check(Context& context, const Forward& pass) const override {
    check_label_note(context, pass.saved[0]);
  }
};

}  // namespace
REGISTER_LAYER(MultinomialLogisticLoss, MultinomialLogisticLossLayer);
}  // namespace crema
