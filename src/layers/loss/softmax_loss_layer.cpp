// SoftmaxWithLoss: softmax of the scores and its cross-entropy with integer labels, or with soft
// labels.
//   loss = 1 / D * sum of -log(p[label])    p = softmax(x) along softmax_param's axis
// D, by loss_param's normalization:
//   VALID (the default)  labels that are not ignore_label, at least 1
//   FULL                 all labels
//   BATCH_SIZE           images of the batch
//   NONE                 1
//   PRE_FIXED            pre_fixed_normalizer (forks)
// As in Caffe, -log(p) is clamped to 87.3365; a loss that stays there has diverged. The gradient
// has no such limit. From forks: label_smoothing (or softmax_param.label_smooth_factor) e puts 1 -
// e on the label and spreads e over all classes; class_weighting with weight_by_label_freqs: true,
// or softmax_param.class_weight, multiplies each loss by its label's weight. A third bottom, which
// WeightedSoftmaxWithLoss needs, multiplies it by a weight per position; VALID then divides by the
// sum of these weights (times those of the classes), at least 1. With softmax_param.hard_ratio r in
// addition, only the fraction r of positions with the largest losses (ties included) has a
// gradient, divided by their number or weights. The loss is that of all positions.
// Shapes: x (N, C, ...), labels with one value per position, such as (N), (N, 1) or (N, H, W); the
// loss is a scalar, a second top has the probabilities, like x. Labels are the integers from 0 to
// C - 1; others are an error. Labels with a value q[k] from 0 to 1 for each score, as (N, C), are
// soft labels, as from augment's mixup and cutmix: the loss and gradient of label k count with
// q[k], VALID counts each position once, and there is no ignore_label. A third top (R-FCN, also as
// SoftmaxWithLossOHEM) has the loss of each position before the division, with the labels' shape, 0
// where the label is ignore_label.
// Parameters: none.
// Gradient: dx = (p - target) / D, times the loss weight; none for labels and ignored positions,
// none from the second top.
#include "kernels/detection/keep_largest.h"
#include "kernels/labels/labels.h"
#include "kernels/softmax/softmax_loss.h"
#include "kernels/softmax/softmax_shares_loss.h"
#include "layers/layer.h"
#include "layers/loss/label_shapes.h"
#include "layers/loss/loss_normalizer.h"
#include "proto/layer.pb.h"
#include "proto/params/activation.pb.h"
#include "tensor/part.h"

namespace crema {
namespace {

class SoftmaxWithLossLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {
      .kind = LayerKind::loss, .labels = LabelKind::scored, .activation = "Softmax"};

  explicit SoftmaxWithLossLayer(bool weighted = false) : weighted_(weighted) {}

 private:
  const LossParameter& p() const { return params<LossParameter>(); }
  const SoftmaxParameter& softmax() const { return params<SoftmaxParameter>(); }
  Arity bottoms() const override { return {weighted_ ? 3 : 2, 3}; }
  Arity tops() const override { return {1, weighted_ ? 2 : 3}; }
  bool is_loss() const override { return true; }
  LayerTraits traits() const override {
    return {.order_rule = order_rule_, .half_rule = HalfRule::follows, .reads = {true, false}};
  }
  bool differentiable(int bottom) const override { return bottom == 0; }
  // An axis before that of the classes counts positions, as the batch does.
  bool independent_along(int bottom, int axis, const std::vector<Shape>&) const override {
    return bottom > 0 || axis == 0 || axis < axis_;
  }

  void setup(Context& context, const std::vector<Shape>& bottoms) override {
    axis_ = bottoms[0].canonical_axis(softmax().axis());
    shares_ = has_shares(bottoms[0], bottoms[1]);
    require(!shares_ || !p().has_ignore_label(),
            "loss_param has ignore_label, but the labels are shares of the classes (",
            bottoms[1].brief(), "), not classes; a position whose shares are all 0 costs nothing");
    // In channels-last, scores are ordered by position; the labels' order must agree.
    bool labels_alike = true;
    for (size_t i = 1; i < bottoms.size(); ++i)
      labels_alike =
          labels_alike && same_layout(Format::channels_last(), Format::row_major(), bottoms[i]);
    order_rule_ = axis_ == 1 && labels_alike ? OrderRule::any : OrderRule::row_major;
    smoothing_ =
        p().has_label_smoothing() ? p().label_smoothing() : softmax().label_smooth_factor();
    require(smoothing_ >= 0 && smoothing_ < 1,
            "label_smoothing must be at least 0 and below 1, but is ", smoothing_);
    const float ratio = softmax().hard_ratio();
    require(ratio >= 0 && ratio <= 1, "hard_ratio must be from 0 to 1, but is ", ratio);
    hard_ = ratio < 1 && bottoms.size() == 3;
    if (ratio < 1 && !hard_) {
      context.log().warning(cat(name(), ": hard_ratio has no effect without a third bottom with a ",
                                "weight for each label, as in the fork"));
    }
    if (p().weight_by_label_freqs()) {
      weights_.assign(p().class_weighting().begin(), p().class_weighting().end());
    } else {
      weights_.assign(softmax().class_weight().begin(), softmax().class_weight().end());
    }
  }

  // Saved: the data of infer(), then, with hard_ratio, those of prepare(), from a second forward
  // with the weights that hard_ratio keeps.
  enum Saved {
    kPositions,
    kNormalizer,
    kNote,
    kHardPositions,
    kHardNormalizer,
    kHardWeights,
    kHardKey,  // of keep_largest()
    kHardLoss,
  };

  // Minimum number of positions that have a gradient.
  int64_t hard_positions(int64_t positions) const {
    const float easy = static_cast<float>(positions) * (1 - softmax().hard_ratio());
    return std::max<int64_t>(1, positions - static_cast<int64_t>(easy));
  }

  int64_t positions(const Shape& x) const { return x.count(0, axis_) * x.count(axis_ + 1); }

  // With one class labels are classes, as in Caffe.
  bool has_shares(const Shape& x, const Shape& labels) const {
    return x[axis_] > 1 && labels.axes() > axis_ && labels[axis_] == x[axis_] &&
           labels.count(0, axis_) == x.count(0, axis_) && labels.count() == x.count();
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape &x = bottoms[0], &labels = bottoms[1];
    const int64_t positions = this->positions(x), wanted = shares_ ? x.count() : positions;
    require(labels.count() == wanted, "there must be one label for each position: scores of ",
            x.brief(), " with classes along axis ", axis_, " need ", positions,
            " labels, but there are ", labels.count(), " (", labels.brief(), ")",
            advice_on_labels(x, axis_, labels));
    require(bottoms.size() < 3 || bottoms[2].count() == positions,
            "the third bottom must have a weight "
            "for each of ",
            positions, " labels, but is ", bottoms.back().brief());
    const bool weighted = p().weight_by_label_freqs() || softmax().class_weight_size() > 0;
    require(!weighted || static_cast<int64_t>(weights_.size()) == x[axis_],
            p().weight_by_label_freqs() ? "class_weighting" : "class_weight", " has ",
            weights_.size(), " values for ", x[axis_], " classes");
    std::vector<Shape> tops = {Shape()};
    if (message().top_size() > 1) tops.push_back(x);
    if (message().top_size() > 2) {
      tops.push_back(labels);
      if (shares_) tops.back()[axis_] = 1;
    }
    return {tops, {{{rows(), positions}, {}}, {{2}, {}}, {{LabelNote::kCount}, DType::i32, true}}};
  }

  // The number of rows of SoftmaxLossSaved::positions.
  int64_t rows() const { return shares_ ? 4 : 3; }

  struct State : LayerState {
    Tensor class_weights;  // empty: none
  };

  // With hard_ratio, backward reads the data that the second forward saved.
  Prepared prepare(Context& context, const Preparation& preparation) const override {
    Prepared prepared;
    Tensor& class_weights = prepared.make_state<State>().class_weights;
    if (!weights_.empty()) {
      class_weights = Tensor(context, Shape{preparation.bottoms[0][axis_]}, preparation.dtype);
      from_floats(context, weights_.data(), class_weights);
    }
    if (!hard_ || !preparation.backward) return prepared;
    const int64_t positions = this->positions(preparation.bottoms[0]);
    prepared.saved = {
        {{rows(), positions}, {}}, {{2}, {}}, {{positions}, {}}, {{1}, DType::i32}, {{}, {}}};
    return prepared;
  }

  LossParts loss_parts(const std::vector<Shape>& bottoms) const override {
    if (axis_ == 0) return LossParts::none(kSoftmaxOverBatch);
    if (hard_) {
      return LossParts::none(
          "hard_ratio chooses the positions with the largest losses of the whole batch, and each "
          "rank sees only its own part of them; leave it out");
    }
    return normalizer(bottoms[0], bottoms.size() == 3).parts();
  }
  Tensor loss_count(const std::vector<Tensor>& saved) const override { return saved[kNormalizer]; }
  LossNormalizer normalizer(const Shape& x, bool weighted) const {
    return loss_normalizer(p(), LossParameter::VALID, x.count(0, axis_), positions(x), weighted);
  }

  template <typename Pass>
  SoftmaxLossCase make_case(const Pass& pass) const {
    const std::vector<Tensor>& bottom = pass.bottom;
    const Tensor& x = bottom[0];
    const Shape& shape = x.shape();
    SoftmaxLossCase c;
    c.view = SoftmaxView::of(shape, x.format(), axis_);
    c.images = axis_ == 0 ? 1 : shape[0];
    if (p().has_ignore_label()) c.ignore_label = p().ignore_label();
    const LossNormalizer divisor = normalizer(shape, bottom.size() == 3);
    c.divide_by_valid = divisor.by_valid;
    c.normalizer = divisor.constant;
    c.smoothing = smoothing_;
    c.shares = shares_;
    c.class_weights = state_of<State>(pass).class_weights;
    if (bottom.size() == 3) c.position_weights = bottom[2];
    return c;
  }

  static SoftmaxLossSaved unpack(const std::vector<Tensor>& saved) {
    return {saved[kPositions], saved[kNormalizer], saved[kNote]};
  }
  static bool has_hard(const std::vector<Tensor>& saved) { return saved.size() > kHardPositions; }
  static SoftmaxLossSaved unpack_hard(const std::vector<Tensor>& saved) {
    return {saved[kHardPositions], saved[kHardNormalizer], saved[kNote]};
  }

  // The undivided losses, the third row of kPositions.
  static Tensor losses(const Forward& pass) {
    const int64_t positions = pass.saved[kPositions].shape()[1];
    return part(pass.saved[kPositions], {positions}, 2 * positions);
  }

  void choose_hard(Context& context, SoftmaxLossCase c, const Forward& pass) const {
    const int64_t positions = pass.saved[kPositions].shape()[1];
    const Tensor& weights = pass.saved[kHardWeights];
    keep_largest(context, losses(pass), hard_positions(positions),
                 pass.bottom[2].reshaped({positions}), weights, pass.saved[kHardKey]);
    c.position_weights = weights;
    softmax_loss_forward(context, c, pass.bottom[0], pass.bottom[1], pass.saved[kHardLoss],
                         unpack_hard(pass.saved), Tensor());
  }

  void forward(Context& context, const Forward& pass) const override {
    SoftmaxLossCase c = make_case(pass);
    c.pass = pass.pass;
    c.live_pass = pass.live_pass;
    softmax_loss_forward(context, c, pass.bottom[0], pass.bottom[1], pass.top[0],
                         unpack(pass.saved), pass.top.size() > 1 ? pass.top[1] : Tensor());
    if (has_hard(pass.saved)) choose_hard(context, c, pass);
    if (pass.top.size() > 2) copy(context, losses(pass), pass.top[2]);
  }
  void backward(Context& context, const Backward& pass) const override {
    if (!pass.bottom_diff[0]) return;
    SoftmaxLossCase c = make_case(pass);
    const bool hard = has_hard(pass.saved);
    if (hard) c.position_weights = pass.saved[kHardWeights];
    softmax_loss_backward(context, c, pass.bottom[0], pass.bottom[1],
                          hard ? unpack_hard(pass.saved) : unpack(pass.saved), pass.top_diff[0],
                          pass.bottom_diff[0]);
  }

  void check(Context& context, const Forward& pass) const override {
    if (!shares_) return check_label_note(context, pass.saved[kNote]);
    if (const std::optional<NotedLabel> bad = take_label_note(context, pass.saved[kNote]))
      fail_for_share(make_case(pass), bad->position, bad->label, when_noted(*bad));
  }

  int axis_ = 1;
  OrderRule order_rule_ = OrderRule::row_major;
  float smoothing_ = 0;
  bool shares_ = false;  // the labels are shares of the classes
  bool hard_ = false;
  std::vector<float> weights_;  // weights of the classes, or none
  const bool weighted_;         // WeightedSoftmaxWithLoss: the third bottom is required
};

}  // namespace
REGISTER_LAYER(SoftmaxWithLoss, SoftmaxWithLossLayer);
REGISTER_LAYER(WeightedSoftmaxWithLoss, SoftmaxWithLossLayer, true);
REGISTER_LAYER(SoftmaxWithLossOHEM, SoftmaxWithLossLayer);
}  // namespace crema
