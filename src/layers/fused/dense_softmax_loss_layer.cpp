// InnerProduct+SoftmaxWithLoss: what the planner makes of these neighbours where a classifier is
// small and kernels/softmax/dense_softmax_loss.h does their work. Elsewhere, as in tests, the
// members run one after the other.
//   loss = softmax loss of x w' + b
// Shapes: x (N, ...), labels (N); the loss is a scalar.
// Parameters: those of InnerProduct.
// Gradient: that of SoftmaxWithLoss through InnerProduct; none for labels.
#include <algorithm>

#include "kernels/core/bias.h"
#include "kernels/softmax/dense_softmax_loss.h"
#include "layers/fused/fused_member.h"
#include "layers/layer.h"
#include "layers/loss/loss_normalizer.h"
#include "layers/vision/dense_weights.h"
#include "proto/layer.pb.h"
#include "proto/params/activation.pb.h"
#include "proto/params/dense.pb.h"
#include "tensor/on.h"

namespace crema {
namespace {

class DenseSoftmaxLossLayer : public Layer {
  Arity bottoms() const override { return {2, 2}; }
  bool is_loss() const override { return true; }
  bool differentiable(int bottom) const override { return bottom == 0; }
  OrderRule order_rule() const override { return dense_->order_rule(); }
  HalfRule half_rule() const override { return HalfRule::prefers; }
  BackwardReads reads() const override { return {true, false}; }
  bool can_take_relu() const override { return true; }
  bool can_take_relu_factor() const override { return true; }

  void setup(Context& context, const std::vector<Shape>& bottoms) override {
    dense_ = joined_member(*this, "InnerProduct");
    dense_->setup(context, {bottoms[0]});
    for (const ParameterSpec& spec : dense_->parameters())
      add_parameter(spec.shape, *spec.filler, spec.learned);
    softmax_ = joined_member(*this, "SoftmaxWithLoss");
    softmax_->setup(context, behind(bottoms));
  }

  // What the loss reads: scores and labels.
  std::vector<Shape> behind(const std::vector<Shape>& bottoms) const {
    return {dense_->infer({bottoms[0]}).tops[0], bottoms[1]};
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    return softmax_->infer(behind(bottoms));
  }

  bool worth_joining(const Context& context, const std::vector<Shape>& bottoms,
                     Precision) const override {
    const InnerProductParameter& p = params<InnerProductParameter>();
    const LossParameter& loss = params<LossParameter>();
    const SoftmaxParameter& softmax = params<SoftmaxParameter>();
    const bool plain = behind(bottoms)[0].axes() == 2 && softmax.axis() == 1 &&
                       softmax.class_weight_size() == 0 && !loss.weight_by_label_freqs() &&
                       !p.transpose() && !p.normalize() && message().top_size() == 1;
    return plain && case_of(bottoms).worth_it(context);
  }

  DenseSoftmaxLoss case_of(const std::vector<Shape>& bottoms) const {
    DenseSoftmaxLoss c;
    const Shape scores = behind(bottoms)[0];
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

  Prepared prepare(Context& context, const Preparation& preparation) override {
    const std::vector<Shape>& bottoms = preparation.bottoms;
    const Shape scores = behind(bottoms)[0];
    const std::vector<bool>& learned = preparation.parameter_needs_diff;
    relu_factor_ = preparation.takes_relu ? preparation.relu_factor : 0.f;
    learns_ = preparation.backward && std::count(learned.begin(), learned.end(), true) > 0;
    const Format weights = dense_weights_format(preparation);
    const std::optional<Format>& given = preparation.parameter_formats[0];
    joined_.reset();
    if (preparation.dtype == DType::f32 &&
        (!given || same_layout(*given, weights, parameters()[0].shape)) &&
        worth_joining(context, bottoms, preparation.precision)) {
      joined_ = case_of(bottoms);
      joined_->relu_factor = relu_factor_;
      Prepared prepared;
      prepared.parameter_formats.resize(parameters().size());
      prepared.parameter_formats[0] = weights;
      prepared.half_parameters.assign(parameters().size(), is_half(preparation.storage));
      prepared.saved = {{scores, DType::f32}};
      return prepared;
    }
    forward_saved_ = infer(bottoms).saved.size();
    Preparation inner = preparation;
    inner.bottoms = {bottoms[0]};
    inner.tops = {scores};
    Prepared prepared = dense_->prepare(context, inner);
    Preparation last = preparation;
    last.bottoms = behind(bottoms);
    softmax_->prepare(context, last);
    prepared.saved = {{scores, preparation.storage}, {scores, preparation.storage}};
    return prepared;
  }

  void forward(Context& context, const Forward& pass) override {
    const Tensor b = pass.parameters.size() > 1 ? pass.parameters[1] : Tensor();
    if (joined_) {
      joined_->loss.pass = pass.pass;
      joined_->loss.live_pass = pass.live_pass;
      const auto loss = [&] {
        joined_->forward(context, pass.bottom[0], pass.parameters[0], b, pass.bottom[1],
                         pass.top[0], pass.saved[kNote]);
      };
      // Backward needs nothing of it. What gradients of parameters read stays until these are done.
      return learns_ ? context.aside(0, loss) : loss();
    }
    const Tensor& scores = pass.saved[forward_saved_];
    Forward part = pass;
    part.bottom = {pass.bottom[0]};
    part.top = {scores};
    dense_->forward(context, part);
    part.bottom = {scores, pass.bottom[1]};
    part.top = pass.top;
    part.saved.resize(forward_saved_);
    softmax_->forward(context, part);
  }

  void backward(Context& context, const Backward& pass) override {
    const Tensor& ds = pass.saved.back();
    if (joined_) {
      const Tensor b = pass.parameters.size() > 1 ? pass.parameters[1] : Tensor();
      joined_->backward(context, pass.bottom[0], pass.parameters[0], b, pass.bottom[1],
                        pass.top_diff[0], ds, pass.bottom_diff[0]);
      const Tensor &dw = pass.parameter_diff[0],
                   db = pass.parameter_diff.size() > 1 ? pass.parameter_diff[1] : Tensor();
      if (!dw && !db) return;
      return context.aside(pass.aside_lane, [&] {
        joined_->backward_parameters(context, pass.bottom[0], ds, dw, db, pass.accumulate[0],
                                     db && pass.accumulate[1]);
      });
    }
    Backward part = pass;
    part.saved.resize(forward_saved_);
    part.bottom = {pass.saved[forward_saved_], pass.bottom[1]};
    part.bottom_diff = {ds, Tensor()};
    softmax_->backward(context, part);
    part.bottom = {pass.bottom[0]};
    part.top = {Tensor()};
    part.top_diff = {ds};
    part.bottom_diff = {pass.bottom_diff[0]};
    dense_->backward(context, part);
    const Tensor& dx = pass.bottom_diff[0];
    if (!dx || relu_factor_ == 0) return;
    on_real(dx, [&]<typename T>() {
      relu_gradient(context, dx.count(), pass.bottom[0].data<T>(), {0, relu_factor_}, dx.data<T>());
    });
  }

  void check(Context& context, const Forward& pass) const override {
    softmax_->check(context, pass);
  }

  int64_t multiply_adds(const std::vector<Shape>& bottoms,
                        const std::vector<Shape>&) const override {
    return bottoms[0].count() * parameters()[0].shape[0];
  }

  static constexpr size_t kNote = 2;  // of what SoftmaxWithLoss saves
  std::unique_ptr<Layer> dense_, softmax_;
  std::optional<DenseSoftmaxLoss> joined_;
  size_t forward_saved_ = 0;  // where what the members keep between them begins
  bool learns_ = false;
  float relu_factor_ = 0;  // DenseSoftmaxLoss's
};

[[maybe_unused]] const bool joined_type = LayerRegistry::add(
    "InnerProduct+SoftmaxWithLoss",
    {[]() -> std::unique_ptr<Layer> { return std::make_unique<DenseSoftmaxLossLayer>(); },
     __FILE__});

}  // namespace
}  // namespace crema
