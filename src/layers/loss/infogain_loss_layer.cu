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
#include "layers/loss/labelled_softmax_loss.h"

namespace crema {
namespace {

template <typename T>
struct Infogain {
  LabelledPositions<T> positions;
  const T *h, *sums;  // sums: of the rows of H

  CREMA_HD const T* worth(int label) const {
    return h + (label < 0 ? 0 : label) * positions.labels.classes;
  }
  CREMA_HD T loss(int64_t row, int64_t column) const {
    const int label = positions.noted(row, column);
    const T* of_label = worth(label);
    const T minimum = T(1e-20);
    T sum = 0;
    for (int64_t k = 0; k < positions.labels.classes; ++k) {
      const T value = positions.probability(row, column, k);
      sum -= of_label[k] * log(value > minimum ? value : minimum);
    }
    return positions.if_class(label, sum);
  }
  CREMA_HD T counted(int64_t row, int64_t column) const { return positions.counted(row, column); }
  CREMA_HD void gradient(int64_t row, int64_t column, const LossScale<T>& scale, T* dx) const {
    const int label = positions.label(row, column);
    const T share = scale.value(), all = sums[label < 0 ? 0 : label];
    const T* of_label = worth(label);
    positions.put(row, column, dx, [&](int64_t k, T p) {
      return positions.if_class(label, (p * all - of_label[k]) * share);
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

class InfogainLossLayer : public LabelledSoftmaxLoss<InfogainLossLayer> {
 public:
  static constexpr LayerFacts facts = {
      .kind = LayerKind::loss, .labels = LabelKind::scored, .activation = "Softmax"};

  Arity bottoms() const override { return {2, 3}; }

  void setup(Context&, const std::vector<Shape>& bottoms) override {
    axis_ = bottoms[0].canonical_axis(p().axis());
    require(
        !params<LossParameter>().has_normalize(),
        "InfogainLoss does not support loss_param.normalize; write normalization: VALID for true, "
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

  enum { kRowSums = kEnd };  // of the matrix

  Inference shapes(const std::vector<Shape>& bottoms) const override {
    Inference made = LabelledSoftmaxLoss::shapes(bottoms);
    const int64_t classes = bottoms[0][axis_];
    const int64_t values =
        bottoms.size() == 3 ? bottoms[2].count() : static_cast<int64_t>(matrix_.size());
    require(values == Shape{classes, classes}.count(), "the matrix must have ", classes, " x ",
            classes, " values, one for each pair of classes, but has ", values);
    made.saved.push_back({{classes}, {}});
    return made;
  }

  struct State : LayerState {
    Tensor h;  // the file's matrix; empty: the third bottom
  };

  Prepared prepare(Context& context, const Preparation& preparation) const override {
    Prepared prepared;
    Tensor& h = prepared.make_state<State>().h;
    if (matrix_.empty()) return prepared;
    h = Tensor(context, Shape{static_cast<int64_t>(matrix_.size())}, preparation.dtype);
    from_floats(context, matrix_.data(), h);
    return prepared;
  }

  template <typename T>
  Infogain<T> terms(const LossInput& in) const {
    const Tensor& h = in.bottom.size() == 3 ? in.bottom[2] : state_of<State>(in).h;
    return {positions<T>(in), h.data<T>(), in.saved[kRowSums].data<T>()};
  }

  void forward(Context& context, const Forward& pass) const override {
    const Tensor& sums = pass.saved[kRowSums];
    on(sums, [&]<typename T>() {
      const RowsOf<T> rows{terms<T>(loss_input(pass)).h, sums.count()};
      parallel_sum<T>(context, {sums.count(), 1, sums.count()}, rows, {sums.data<T>()});
    });
    LabelledSoftmaxLoss::forward(context, pass);
  }

 private:
  const InfogainLossParameter& p() const { return params<InfogainLossParameter>(); }

  std::vector<float> matrix_;  // from the file; empty: the third bottom
};

}  // namespace
REGISTER_LAYER(InfogainLoss, InfogainLossLayer);
}  // namespace crema
