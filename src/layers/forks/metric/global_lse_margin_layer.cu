// GlobalLSEMargin (a fork for faces): scales cosines and subtracts a margin from that of the
// labelled class; the margin follows the lead of the labelled classes in the batches so far.
//   y = S x, for the label S (x - m) where m > 0
//   ahead_n = x[n,label] - l_n,  l_n = 1/S * log of the sum over the other classes of exp(S x[n,k])
// S is s, or per vector its value in the third bottom. In training each forward pass moves m to 0.9
// m + 0.1 c, where c is the mean of the ahead_n within 0.1 of m (of all, if there are none); the
// first one, while m is 0, sets it to the fixed point of such means, starting from that of all (at
// most 20 iterations).
// Shapes: x (N, K), labels (N), integers from 0 to K - 1, S (N); y as x. A second top (5): S, and
// the means of x[n,label], of l, of the best x of another class (at least -1), and m.
// Parameters: s (1), 30 if scale_param has no filler, clipped to its min_value and max_value, not
// learned with a third bottom; m (1), initially 0, never learned.
// Gradient, with m constant: dx = dy S, ds = sum of dy y / s, dS_n = sum over k of dy y / S_n; none
// for labels.
#include "device/parallel.h"
#include "kernels/labels/labels.h"
#include "kernels/pointwise/pointwise.h"
#include "kernels/reduce/reduce.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"

namespace crema {
namespace {

constexpr int kTarget = 0, kOthers = 1, kBest = 2, kVectorValues = 3;  // per vector
constexpr int kStatistics = 5;

template <typename T>
struct Scales {
  const T *s, *lengths;  // lengths: may be null
  CREMA_HD T operator()(int64_t n) const { return lengths ? lengths[n] : *s; }
};

template <typename T>
struct KeepWithin {
  T minimum, maximum;
  T* s;
  CREMA_HD void operator()(int64_t) const {
    if (*s < minimum) *s = minimum;
    if (*s > maximum) *s = maximum;
  }
};

template <typename T>
struct VectorStatistics {
  const T* x;
  ClassLabels<T> labels;
  LabelNote note;
  Scales<T> scales;
  T* numbers;  // kVectorValues per vector
  CREMA_HD void operator()(int64_t n) const {
    const int label = labels.at(n);
    const T *row = x + n * labels.classes, scale = scales(n);
    if (label < 0) note.write(n, labels.labels[n]);
    T best = -1, sum = 0;
    for (int64_t k = 0; k < labels.classes; ++k)
      if (k != label && row[k] > best) best = row[k];
    for (int64_t k = 0; k < labels.classes; ++k)
      if (k != label) sum += exp(scale * (row[k] - best));
    T* const out = numbers + n * kVectorValues;
    out[kTarget] = label < 0 ? T(NAN) : row[label];
    out[kOthers] = log(sum) / scale + best;
    out[kBest] = best;
  }
};

// A single index: moves m and writes the second top.
template <typename T>
struct MoveMargin {
  const T* numbers;
  int64_t batch;
  bool moves;
  Scales<T> scales;
  T *m, *top;  // top: may be null
  CREMA_HD T ahead(int64_t n) const {
    return numbers[n * kVectorValues + kTarget] - numbers[n * kVectorValues + kOthers];
  }
  // The mean of the values near `middle`, or of all if there are none.
  CREMA_HD T mean_near(T middle, T distance) const {
    T sum = 0, all = 0;
    int64_t count = 0;
    for (int64_t n = 0; n < batch; ++n) {
      const T value = ahead(n), off = value - middle;
      all += value;
      if (off >= distance || off <= -distance) continue;
      sum += value;
      ++count;
    }
    return count > 0 ? sum / static_cast<T>(count) : all / static_cast<T>(batch);
  }
  CREMA_HD T moved() const {
    const T near = T(0.1), still = T(0.001);
    if (*m != 0) return T(0.9) * *m + T(0.1) * mean_near(*m, near);
    T middle = mean_near(0, T(0));
    for (int i = 0; i < 20; ++i) {
      const T before = middle;
      middle = mean_near(before, near);
      if (middle - before < still && before - middle < still) break;
    }
    return middle;
  }
  CREMA_HD void operator()(int64_t) const {
    const T next = moves ? moved() : *m;
    if (next == next) *m = next;  // NaN is not stored
    if (!top) return;
    for (int i = 0; i < kStatistics; ++i) top[i] = 0;
    const T share = T(1) / static_cast<T>(batch);
    for (int64_t n = 0; n < batch; ++n) {
      top[0] += share * scales(n);
      for (int i = 0; i < kVectorValues; ++i) top[1 + i] += share * numbers[n * kVectorValues + i];
    }
    top[kStatistics - 1] = *m;
  }
};

template <typename T>
struct ScaleWithMargin {
  const T* x;
  ClassLabels<T> labels;
  Scales<T> scales;
  const T* m;
  T* y;
  CREMA_HD void operator()(int64_t n, int64_t k) const {
    const int64_t i = n * labels.classes + k;
    const int label = labels.at(n);
    const T margin = k == label && *m > 0 ? *m : T(0);
    y[i] = label < 0 ? T(NAN) : scales(n) * (x[i] - margin);
  }
};

template <typename T>
struct ScaledBack {
  const T* dy;
  Scales<T> scales;
  int64_t classes;
  T* dx;
  CREMA_HD void operator()(int64_t n, int64_t k) const {
    dx[n * classes + k] = scales(n) * dy[n * classes + k];
  }
};

// dy y / S, to be summed over k or over everything.
template <typename T>
struct ScaleSlope {
  const T *dy, *y;
  Scales<T> scales;
  int64_t classes;
  template <typename>
  CREMA_HD T operator()(int64_t row, int64_t outer, int64_t k) const {
    const int64_t n = row + outer, i = n * classes + k;
    return dy[i] * y[i] / scales(n);
  }
};

class GlobalLseMarginLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::affine,
                                       .keeps_channels = true,
                                       .learned = 1,
                                       .labels = LabelKind::scored,
                                       .in_use = InUse::left_out};

 private:
  const ScaleParameter& p() const { return params<ScaleParameter>(); }
  Arity bottoms() const override { return {2, 3}; }
  Arity tops() const override { return {1, 2}; }
  LayerTraits traits() const override { return {.changes_parameters = true}; }
  bool differentiable(int bottom) const override { return bottom == 0 || bottom == 2; }

  void setup(Context&, const std::vector<Shape>& bottoms) override {
    start_.set_value(30);
    add_parameter({1}, p().has_filler() ? p().filler() : start_, bottoms.size() < 3);
    add_parameter({1}, zero_, false);
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape& x = bottoms[0];
    require(x.axes() >= 2 && x.count(1) > 1, "the cosines are ", x.brief(),
            ", but must be NxK, of two classes or more");
    for (size_t i = 1; i < bottoms.size(); ++i) {
      require(bottoms[i].count() == x[0], "there must be one ", i == 1 ? "label" : "scale",
              " for each of the vectors of ", x.brief(), ", but bottom ", i, " is ",
              bottoms[i].brief());
    }
    std::vector<Shape> tops = {x};
    if (message().top_size() > 1) tops.push_back({kStatistics});
    return {tops, {{{LabelNote::kCount}, DType::i32, true}}};
  }

  // Workspace: the values of each vector.
  Prepared prepare(Context&, const Preparation& preparation) const override {
    Prepared prepared;
    prepared.workspace =
        static_cast<size_t>(preparation.bottoms[0][0] * kVectorValues) * size_of(preparation.dtype);
    return prepared;
  }

  template <typename T, typename Pass>
  Scales<T> scales(const Pass& pass) const {
    return {pass.parameters[0].template data<T>(),
            pass.bottom.size() > 2 ? pass.bottom[2].template data<T>() : nullptr};
  }

  void forward(Context& context, const Forward& pass) const override {
    const Tensor& x = pass.bottom[0];
    const int64_t batch = x.shape()[0], classes = x.shape().count(1);
    check_labels(pass.bottom[1], classes, 1, std::nullopt);
    on(x, [&]<typename T>() {
      const ClassLabels<T> labels{pass.bottom[1].data<T>(), classes};
      const LabelNote note{pass.saved[0].data<int32_t>(), classes, 1, pass.pass, pass.live_pass};
      T *numbers = pass.workspace.data<T>(), *m = pass.parameters[1].data<T>();
      const T maximum = p().has_max_value() ? static_cast<T>(p().max_value()) : T(1e30);
      parallel_for(
          context, 1,
          KeepWithin<T>{static_cast<T>(p().min_value()), maximum, pass.parameters[0].data<T>()});
      const Scales<T> scales = this->scales<T>(pass);
      parallel_for(context, batch, VectorStatistics<T>{x.data<T>(), labels, note, scales, numbers});
      T* const statistics = pass.top.size() > 1 ? pass.top[1].data<T>() : nullptr;
      parallel_for(context, 1, MoveMargin<T>{numbers, batch, training(), scales, m, statistics});
      parallel_rows(context, batch, classes,
                    ScaleWithMargin<T>{x.data<T>(), labels, scales, m, pass.top[0].data<T>()});
    });
  }

  void backward(Context& context, const Backward& pass) const override {
    const Tensor &y = pass.top[0], &dy = pass.top_diff[0];
    const int64_t batch = y.shape()[0], classes = y.shape().count(1);
    on(dy, [&]<typename T>() {
      const Scales<T> scales = this->scales<T>(pass);
      const ScaleSlope<T> slope{dy.data<T>(), y.data<T>(), scales, classes};
      if (const Tensor& ds = pass.parameter_diff[0])
        parallel_sum<T>(context, {1, batch, classes}, slope,
                        {ds.data<T>(), T(1), pass.accumulate[0] != 0});
      if (pass.bottom_diff.size() > 2 && pass.bottom_diff[2])
        parallel_sum<T>(context, {batch, 1, classes}, slope, {pass.bottom_diff[2].data<T>()});
      if (const Tensor& dx = pass.bottom_diff[0])
        parallel_rows(context, batch, classes,
                      ScaledBack<T>{dy.data<T>(), scales, classes, dx.data<T>()});
    });
  }

  void check(Context& context, const Forward& pass) const override {
    check_label_note(context, pass.saved[0]);
  }

  FillerParameter start_, zero_;
};

}  // namespace
REGISTER_LAYER(GlobalLSEMargin, GlobalLseMarginLayer);
}  // namespace crema
