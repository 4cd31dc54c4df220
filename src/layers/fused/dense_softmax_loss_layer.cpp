// InnerProduct+SoftmaxWithLoss: fuses the two. The planner creates it if a classifier is small and
// kernels/softmax/dense_softmax_loss.h implements it. Otherwise, as in tests, the members run one
// after the other.
//   loss = softmax loss of x w' + b
// Shapes: x (N, ...), labels (N); the loss is a scalar.
// Parameters: those of InnerProduct.
// Gradient: that of SoftmaxWithLoss through InnerProduct; none for labels.
#include <algorithm>

#include "kernels/softmax/dense_softmax_loss.h"
#include "layers/fused/fused_layer.h"
#include "layers/loss/loss_normalizer.h"
#include "layers/vision/dense_weights.h"
#include "proto/layer.pb.h"
#include "proto/params/activation.pb.h"
#include "proto/params/dense.pb.h"

namespace crema {
namespace {

class DenseSoftmaxLossLayer : public FusedLayer {
  Arity bottoms() const override { return {2, 2}; }
  bool is_loss() const override { return true; }
  LayerTraits traits() const override {
    return {.order_rule = member(0).traits().order_rule,
            .half_rule = HalfRule::prefers,
            .reads = {true, false}};
  }
  bool differentiable(int bottom) const override { return bottom == 0; }
  Edge bottom_edge(int bottom) const override {
    return {.relu = bottom == 0, .any_relu_factor = bottom == 0};
  }

  void setup(Context& context, const std::vector<Shape>& bottoms) override {
    set_up_members(
        context, bottoms,
        {{"InnerProduct", {{.bottom = 0}}}, {"SoftmaxWithLoss", {{.member = 0}, {.bottom = 1}}}});
  }

  LossParts loss_parts(const std::vector<Shape>& bottoms) const override {
    return member(1).loss_parts({top_of(0, bottoms), bottoms[1]});
  }

  // SoftmaxWithLoss's saved tensors come first.
  Tensor loss_count(const std::vector<Tensor>& saved) const override {
    return member(1).loss_count(saved);
  }

  bool is_profitable(const Context& context, const std::vector<Shape>& bottoms,
                     Precision) const override {
    const InnerProductParameter& p = params<InnerProductParameter>();
    const LossParameter& loss = params<LossParameter>();
    const SoftmaxParameter& softmax = params<SoftmaxParameter>();
    const Shape scores = top_of(0, bottoms);
    const bool plain = scores.axes() == 2 && bottoms[1].count() == scores[0] &&
                       softmax.axis() == 1 && softmax.class_weight_size() == 0 &&
                       !loss.weight_by_label_freqs() && !p.transpose() && !p.normalize() &&
                       !message().has_quantization_param() && message().top_size() == 1;
    const DenseSoftmaxLoss c = case_of(bottoms);
    // The kernels count the labels again in backward, and would count those of this rank only.
    const bool counts_of_ranks =
        training() && context.world() && context.world()->divides_batches && c.loss.divide_by_valid;
    return plain && !counts_of_ranks && c.is_profitable(context);
  }

  DenseSoftmaxLoss case_of(const std::vector<Shape>& bottoms) const {
    DenseSoftmaxLoss c;
    const Shape scores = top_of(0, bottoms);
    c.rows = scores[0];
    c.outputs = scores[1];
    c.inputs = bottoms[0].count(1);
    const LossParameter& p = params<LossParameter>();
    c.loss.view = {c.rows, c.outputs, 1};
    c.loss.images = c.rows;
    if (p.has_ignore_label()) c.loss.ignore_label = p.ignore_label();
    const LossNormalizer divisor = loss_normalizer(p, LossParameter::VALID, c.rows, c.rows);
    c.loss.divide_by_valid = divisor.by_valid;
    c.loss.normalizer = divisor.constant;
    c.loss.smoothing = p.has_label_smoothing() ? p.label_smoothing()
                                               : params<SoftmaxParameter>().label_smooth_factor();
    return c;
  }

  struct LossState : State {
    DenseSoftmaxLoss loss;
    bool learns = false;
  };

  std::optional<Prepared> prepare_kernels(Context& context,
                                          const Preparation& preparation) const override {
    const std::vector<bool>& learned = preparation.parameter_needs_diff;
    const Format weights = dense_weights_format(preparation);
    const std::optional<Format>& given = preparation.parameter_formats[0];
    if (preparation.dtype != DType::f32 ||
        (given && !same_layout(*given, weights, parameters()[0].shape)) ||
        !is_profitable(context, preparation.bottoms, preparation.precision))
      return std::nullopt;
    Prepared prepared;
    LossState& state = prepared.make_state<LossState>();
    state.learns = preparation.backward && std::count(learned.begin(), learned.end(), true) > 0;
    state.loss = case_of(preparation.bottoms);
    const Edge& edge = preparation.bottom_edge;
    state.loss.relu_factor = edge.relu ? edge.relu_factor : 0.f;
    prepared.parameter_formats.resize(parameters().size());
    prepared.parameter_formats[0] = weights;
    prepared.half_parameters.assign(parameters().size(), is_half(preparation.storage));
    prepared.saved = {{top_of(0, preparation.bottoms), DType::f32}};  // the gradient of the scores
    return prepared;
  }

  template <typename Pass>
  static DenseSoftmaxLoss loss_of(const Pass& pass) {
    DenseSoftmaxLoss loss = state_of<LossState>(pass).loss;
    loss.loss.pass = pass.pass;
    loss.loss.live_pass = pass.live_pass;
    return loss;
  }

  void forward_kernels(Context& context, const Forward& pass) const override {
    const Tensor b = pass.parameters.size() > 1 ? pass.parameters[1] : Tensor();
    const auto loss = [&] {
      dense_softmax_loss(context, loss_of(pass), pass.bottom[0], pass.parameters[0], b,
                         pass.bottom[1], pass.top[0], pass.saved[kNote]);
    };
    // Backward does not need the loss. The inputs of parameter gradients are kept until these are
    // done.
    return state_of<LossState>(pass).learns ? context.on_side_stream(0, loss) : loss();
  }

  void backward_kernels(Context& context, const Backward& pass) const override {
    const DenseSoftmaxLoss loss = loss_of(pass);
    const Tensor& ds = pass.saved.back();
    const Tensor b = pass.parameters.size() > 1 ? pass.parameters[1] : Tensor();
    dense_softmax_loss_gradient(context, loss, pass.bottom[0], pass.parameters[0], b,
                                pass.bottom[1], pass.top_diff[0], ds, pass.bottom_diff[0]);
    const Tensor &dw = pass.parameter_diff[0],
                 db = pass.parameter_diff.size() > 1 ? pass.parameter_diff[1] : Tensor();
    if (!dw && !db) return;
    context.on_side_stream(pass.side_stream, [&] {
      dense_softmax_loss_parameters(context, loss, pass.bottom[0], ds, dw, db, pass.accumulate[0],
                                    db && pass.accumulate[1]);
    });
  }

  // The kernels note bad labels where SoftmaxWithLoss does; its saved tensors come first.
  void check_kernels(Context& context, const Forward& pass) const override {
    member(1).check(context, pass);
  }

  int64_t multiply_adds(const std::vector<Shape>& bottoms,
                        const std::vector<Shape>&) const override {
    return bottoms[0].count() * parameters()[0].shape[0];
  }

  static constexpr size_t kNote = 2;  // index among SoftmaxWithLoss's saved tensors
};

REGISTER_FUSED(DenseSoftmaxLossLayer, "InnerProduct+SoftmaxWithLoss");

}  // namespace
}  // namespace crema
