// HingeLoss: one class against all others with a margin of 1.
//   loss = 1 / N * sum over n, k of m[n,k]^p   with m[n,k] = max(0, 1 - t * x[n,k])
//   t = 1 for the label's class, else -1; p = 1 (norm: L1) or 2 (norm: L2)
// Shapes: scores x (N, K...), labels (N); the loss is a scalar.
// Parameters: none.
// Gradient: dx[n,k] = -t * p * m^(p-1) / N where m > 0, times the loss weight; none for the labels.
#include "kernels/core/labels.h"
#include "kernels/core/pointwise.h"
#include "kernels/core/reduce.h"
#include "layers/layer.h"
#include "proto/params/loss.pb.h"

namespace crema {
namespace {

template <typename T>
struct Margins {
  const T *x, *labels;
  int64_t classes;
  // 1 for the label's class, -1 for others; NaN for a label out of range.
  CREMA_HD T target(int64_t image, int64_t k) const {
    const T label = labels[image];
    if (!is_class(label, classes)) return T(NAN);
    return static_cast<int64_t>(label) == k ? T(1) : T(-1);
  }
  CREMA_HD T margin(int64_t image, int64_t k) const {
    const T m = 1 - target(image, k) * x[image * classes + k];
    return m < 0 ? T(0) : m;
  }
};

template <typename T>
struct HingeTerm {
  Margins<T> margins;
  bool squared;
  LabelNote note;
  template <typename>
  CREMA_HD T operator()(int64_t, int64_t image, int64_t k) const {
    const T m = margins.margin(image, k), label = margins.labels[image];
    if (!is_class(label, margins.classes)) note.write(image, label);
    return squared ? m * m : m;
  }
};

template <typename T>
struct HingeGradient {
  Margins<T> margins;
  bool squared;
  const T* weight;
  T share;
  T* dx;
  CREMA_HD void operator()(int64_t image, int64_t k) const {
    const T m = margins.margin(image, k);
    const T slope = squared ? 2 * m : (m > 0 ? T(1) : T(0));
    dx[image * margins.classes + k] = -margins.target(image, k) * slope * share * *weight;
  }
};

class HingeLossLayer : public Layer {
  bool squared() const { return params<HingeLossParameter>().norm() == HingeLossParameter::L2; }
  Arity bottoms() const override { return {2, 2}; }
  bool is_loss() const override { return true; }
  bool differentiable(int bottom) const override { return bottom == 0; }
  BackwardReads reads() const override { return {true, false}; }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    require(bottoms[0].axes() > 0 && bottoms[1].count() == bottoms[0][0],
            "there must be one label for each image of the batch, but the scores are ",
            bottoms[0].brief(), " and the labels ", bottoms[1].brief());
    return {{Shape()}, {{{LabelNote::kCount}, DType::i32, true}}};
  }

  void forward(Context& context, const Forward& pass) override {
    const Tensor &x = pass.bottom[0], &labels = pass.bottom[1];
    const int64_t images = x.shape()[0], classes = x.shape().count(1);
    check_labels(labels, classes, 1, std::nullopt);
    const LabelNote note{pass.saved[0].data<int32_t>(), classes, 1, pass.pass, pass.live_pass};
    on(x, [&]<typename T>() {
      const HingeTerm<T> term{{x.data<T>(), labels.data<T>(), classes}, squared(), note};
      parallel_sum<T>(context, {1, images, classes}, term,
                      {pass.top[0].data<T>(), T(1) / static_cast<T>(images)});
    });
  }

  void backward(Context& context, const Backward& pass) override {
    const Tensor &x = pass.bottom[0], &labels = pass.bottom[1];
    const int64_t images = x.shape()[0], classes = x.shape().count(1);
    on(x, [&]<typename T>() {
      const HingeGradient<T> gradient{{x.data<T>(), labels.data<T>(), classes},
                                      squared(),
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
REGISTER_LAYER(HingeLoss, HingeLossLayer);
}  // namespace crema
