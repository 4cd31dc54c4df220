// Base of losses of p = softmax(x) with a label for each position, as FocalLoss. For .cu files
// only, like device/parallel.h. The layer's setup() sets axis_; its terms have positions<T>(in),
// whose rows are images and whose columns their positions.
#pragma once

#include "kernels/softmax/softmax.h"
#include "kernels/softmax/softmax_sums.h"
#include "layers/loss/labelled_loss.h"

namespace crema {

template <typename T>
struct LabelledPositions {
  NotedLabels<T> labels;
  int64_t inner;
  const T* p;

  CREMA_HD int64_t start(int64_t row, int64_t column) const {
    return row * labels.classes * inner + column;
  }
  CREMA_HD T probability(int64_t row, int64_t column, int64_t k) const {
    return p[start(row, column) + k * inner];
  }
  CREMA_HD int label(int64_t row, int64_t column) const { return labels.at(row * inner + column); }
  CREMA_HD int noted(int64_t row, int64_t column) const {
    return labels.noted(row * inner + column);
  }
  CREMA_HD T counted(int64_t row, int64_t column) const {
    return label(row, column) >= 0 ? T(1) : T(0);
  }
  // The value, but NaN for a label out of range, and 0 for the ignored one.
  CREMA_HD static T if_class(int label, T value) {
    return label >= 0 ? value : label == ClassLabels<T>::kBad ? T(NAN) : T(0);
  }
  // dx[k] = slope(k, p[k]) for the classes of a position.
  template <typename Slope>
  CREMA_HD void put(int64_t row, int64_t column, T* dx, const Slope& slope) const {
    const int64_t first = start(row, column);
    over_classes<T>(
        labels.classes, [&](int64_t k) { return p[first + k * inner]; },
        [&](int64_t k, T value) { dx[first + k * inner] = slope(k, value); });
  }
};

template <typename Self>
class LabelledSoftmaxLoss : public LabelledLoss<Self> {
 public:
  Arity tops() const override { return {1, 2}; }

  // kSums is read by TermLoss. The note comes last.
  enum Saved { kSums, kProbabilities, kEnd };

  Inference shapes(const std::vector<Shape>& bottoms) const override {
    const Shape &x = bottoms[0], &labels = bottoms[1];
    const int64_t positions = x.count(0, axis_) * x.count(axis_ + 1);
    require(labels.count() == positions, "there must be one label for each position: scores of ",
            x.brief(), " with classes along axis ", axis_, " need ", positions,
            " labels, but there are ", labels.count(), " (", labels.brief(), ")",
            hint_about_shares(labels, positions));
    return {this->tops_with(x), {loss_sums(), {x, {}}}};
  }
  LabelRange range(const Shape& x) const override {
    const int64_t each = x.count(axis_ + 1) * (axis_ > 0 ? x.count(1, axis_) : 1);
    if (!loss().has_ignore_label()) return {x[axis_], each};
    return {x[axis_], each, loss().ignore_label()};
  }
  SumExtent extent(const Shape& x) const { return {1, x.count(0, axis_), x.count(axis_ + 1)}; }
  LossNormalizer normalizer(const Shape& x) const {
    return loss_normalizer(loss(), LossParameter::VALID, x.count(0, axis_),
                           x.count(0, axis_) * x.count(axis_ + 1));
  }
  LossParts loss_parts(const std::vector<Shape>& bottoms) const override {
    return axis_ == 0 ? LossParts::none(kSoftmaxOverBatch) : normalizer(bottoms[0]).parts();
  }
  template <typename T>
  LabelledPositions<T> positions(const LossInput& in) const {
    return {this->template labels<T>(in), in.bottom[0].shape().count(axis_ + 1),
            in.saved[kProbabilities].template data<T>()};
  }

  void forward(Context& context, const Forward& pass) const override {
    const Tensor &x = pass.bottom[0], &p = pass.saved[kProbabilities];
    softmax_forward(context, SoftmaxView::of(x.shape(), {}, axis_), x, p);
    if (pass.top.size() > 1) pointwise_copy(context, pass.top[1], p);
    LabelledLoss<Self>::forward(context, pass);
  }

 protected:
  int axis_ = 1;

 private:
  const LossParameter& loss() const { return this->template params<LossParameter>(); }
};

}  // namespace crema
