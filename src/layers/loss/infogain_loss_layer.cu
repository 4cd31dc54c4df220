// InfogainLoss: softmax cross-entropy in which a matrix weights the classes for each label.
//   loss = -1 / D * sum over positions and k of H[label,k] * log(p[k])
//   p = softmax(x) along `axis`
//   D as in SoftmaxWithLoss; with the identity as H the loss is that of SoftmaxWithLoss
// As in Caffe, p is clamped to at least 1e-20 in the loss; the gradient has no such limit.
// Shapes: x (N, C, ...), labels with one value per position, H of C * C values, from the file
// infogain_loss_param.source (a BlobProto) or a third bottom; the loss is a scalar, a second top
// has the probabilities, like x. Labels are the integers from 0 to C - 1; others are an error.
// Parameters: none.
// Gradient: dx[k] = (p[k] * sum of H[label] - H[label,k]) / D, times the loss weight; none for
// labels and H, none from the second top.
#include "base/files.h"
#include "kernels/core/labels.h"
#include "kernels/core/pointwise.h"
#include "kernels/softmax/softmax.h"
#include "kernels/softmax/softmax_sums.h"
#include "layers/layer.h"
#include "layers/loss/loss_sum.h"
#include "proto/layer.pb.h"

namespace crema {
namespace {

// A row is an image, a column one of its positions.
template <typename T>
struct Infogain {
  ClassLabels<T> labels;
  int64_t inner;
  const T *p, *h;
  LabelNote note;

  CREMA_HD int64_t start(int64_t row, int64_t column) const {
    return row * labels.classes * inner + column;
  }
  CREMA_HD T loss(int64_t row, int64_t column) const {
    const int64_t position = row * inner + column;
    const int label = labels.at(position);
    if (label == ClassLabels<T>::kBad) note.write(position, labels.labels[position]);
    const T* own = p + start(row, column);
    const T* worth = h + (label < 0 ? 0 : label) * labels.classes;
    const T minimum = T(1e-20);
    T sum = 0;
    for (int64_t k = 0; k < labels.classes; ++k) {
      const T value = own[k * inner];
      sum -= worth[k] * log(value > minimum ? value : minimum);
    }
    return label >= 0 ? sum : label == ClassLabels<T>::kBad ? T(NAN) : T(0);
  }
  CREMA_HD T counted(int64_t row, int64_t column) const {
    return labels.at(row * inner + column) >= 0 ? T(1) : T(0);
  }
};

template <typename T>
struct InfogainGradient {
  Infogain<T> of;
  const T *sums, *weight;  // of the rows of H; of the loss
  LossDivisor<T> divisor;
  T* dx;
  CREMA_HD void operator()(int64_t row, int64_t column) const {
    const int label = of.labels.at(row * of.inner + column), own = label < 0 ? 0 : label;
    const T share = *weight / divisor.value(), all = sums[own];
    const T none = label == ClassLabels<T>::kBad ? T(NAN) : T(0);
    const T* worth = of.h + own * of.labels.classes;
    const int64_t start = of.start(row, column);
    over_classes<T>(
        of.labels.classes, [&](int64_t k) { return of.p[start + k * of.inner]; },
        [&](int64_t k, T value) {
          const T slope = (value * all - worth[k]) * share;
          dx[start + k * of.inner] = label >= 0 ? slope : none;
        });
  }
};

template <typename T>
struct RowsOf {
  const T* h;
  int64_t classes;
  template <typename>
  CREMA_HD T operator()(int64_t k, int64_t, int64_t column) const {
    return h[k * classes + column];
  }
};

class InfogainLossLayer : public Layer {
  const InfogainLossParameter& p() const { return params<InfogainLossParameter>(); }
  const LossParameter& loss() const { return params<LossParameter>(); }
  Arity bottoms() const override { return {2, 3}; }
  Arity tops() const override { return {1, 2}; }
  bool is_loss() const override { return true; }
  bool differentiable(int bottom) const override { return bottom == 0; }
  BackwardReads reads() const override { return {true, false}; }

  void setup(Context&, const std::vector<Shape>& bottoms) override {
    axis_ = bottoms[0].canonical_axis(p().axis());
    require(!loss().has_normalize(),
            "InfogainLoss does not know loss_param.normalize; write normalization: VALID for true, "
            "BATCH_SIZE for false");
    require(bottoms.size() == 3 || !p().source().empty(),
            "the matrix is missing: infogain_loss_param.source names its file, or a third bottom "
            "gives it");
    if (bottoms.size() == 3) return;
    const std::string path = find_file(p().source(), folder());
    BlobProto blob;
    require(blob.ParseFromString(read_file(path)), path, ": is not a binary BlobProto");
    matrix_.assign(blob.data().begin(), blob.data().end());
    if (matrix_.empty()) matrix_.assign(blob.double_data().begin(), blob.double_data().end());
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape& x = bottoms[0];
    const int64_t positions = x.count(0, axis_) * x.count(axis_ + 1), classes = x[axis_];
    require(bottoms[1].count() == positions, "there must be one label for each place: scores of ",
            x.brief(), " with classes along axis ", axis_, " need ", positions,
            " labels, but there are ", bottoms[1].count(), " (", bottoms[1].brief(), ")");
    const int64_t values =
        bottoms.size() == 3 ? bottoms[2].count() : static_cast<int64_t>(matrix_.size());
    require(values == classes * classes, "the matrix must have ", classes, " x ", classes,
            " values, one for each pair of classes, but has ", values);
    std::vector<Shape> tops = {Shape()};
    if (message().top_size() > 1) tops.push_back(x);
    return {tops, {{x, {}}, {{classes}, {}}, loss_sums(), {{LabelNote::kCount}, DType::i32, true}}};
  }

  Prepared prepare(Context& context, const Preparation& preparation) override {
    if (matrix_.empty()) return {};
    h_ = Tensor(context, Shape{static_cast<int64_t>(matrix_.size())}, preparation.dtype);
    from_floats(context, matrix_.data(), h_);
    return {};
  }

  LossNormalizer normalizer(const Shape& x) const {
    return loss_normalizer(loss(), LossParameter::VALID, x.count(0, axis_),
                           x.count(0, axis_) * x.count(axis_ + 1));
  }
  template <typename T>
  Infogain<T> body(const std::vector<Tensor>& bottom, const Tensor& probability) const {
    const Shape& x = bottom[0].shape();
    return {{bottom[1].data<T>(), x[axis_], loss().has_ignore_label(), loss().ignore_label()},
            x.count(axis_ + 1),
            probability.data<T>(),
            (bottom.size() == 3 ? bottom[2] : h_).data<T>(),
            {}};
  }

  void forward(Context& context, const Forward& pass) override {
    const Tensor &x = pass.bottom[0], &probability = pass.saved[0];
    const Shape& shape = x.shape();
    const int64_t classes = shape[axis_], positions = x.count() / classes;
    const int64_t each = axis_ > 0 ? positions / shape[0] : positions;
    const auto ignored =
        loss().has_ignore_label() ? std::optional<int>(loss().ignore_label()) : std::nullopt;
    check_labels(pass.bottom[1], classes, each, ignored);
    softmax_forward(context, SoftmaxView::of(shape, {}, axis_), x, probability);
    if (pass.top.size() > 1) pointwise_copy(context, pass.top[1], probability);
    on(x, [&]<typename T>() {
      Infogain<T> terms = body<T>(pass.bottom, probability);
      terms.note = {pass.saved[3].data<int32_t>(), classes, each, pass.pass, pass.live_pass};
      parallel_sum<T>(context, {classes, 1, classes}, RowsOf<T>{terms.h, classes},
                      {pass.saved[1].data<T>()});
      sum_loss<T>(context, positions / terms.inner, terms.inner, terms, normalizer(shape),
                  pass.saved[2], pass.top[0]);
    });
  }

  void backward(Context& context, const Backward& pass) override {
    const Tensor& dx = pass.bottom_diff[0];
    on(dx, [&]<typename T>() {
      const Infogain<T> of = body<T>(pass.bottom, pass.saved[0]);
      const InfogainGradient<T> gradient{of, pass.saved[1].data<T>(), pass.top_diff[0].data<T>(),
                                         divisor_of<T>(normalizer(dx.shape()), pass.saved[2]),
                                         dx.data<T>()};
      parallel_rows(context, dx.shape().count(0, axis_), of.inner, gradient);
    });
  }

  void check(Context& context, const Forward& pass) const override {
    check_label_note(context, pass.saved[3]);
  }

  int axis_ = 1;
  std::vector<float> matrix_;  // from the file; empty: the third bottom
  Tensor h_;
};

}  // namespace
REGISTER_LAYER(InfogainLoss, InfogainLossLayer);
}  // namespace crema
