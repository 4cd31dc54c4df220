// BatchNorm+Scale+BatchNorm+Scale+Sum+ReLU: what the planner makes of the end of a residual block
// both of whose branches end in a BatchNorm with a Scale, where one kernel
// (kernels/norm/batch_norm_pair.h) does their work. Elsewhere, as in tests, the members run one
// after the other.
//   y = relu(norm(x) * scale + bias + norm(z) * scale' + bias')    norm: see BatchNorm
// Shapes: x and z (N, C, ...), y the same.
// Parameters: those of BatchNorm and Scale for x, then those for z; the settings in the message are
// for both.
// Gradient: that of y through the ReLU, then through either BatchNorm.
#include <algorithm>

#include "kernels/norm/batch_norm_pair.h"
#include "layers/fused/fused_member.h"
#include "layers/norm/batch_norm_base.h"
#include "proto/layer.pb.h"

namespace crema {
namespace {

class BatchNormPairLayer : public Layer {
  Arity bottoms() const override { return {2, 2}; }
  bool in_place() const override { return true; }
  OrderRule order_rule() const override { return OrderRule::any; }
  HalfRule half_rule() const override { return HalfRule::follows; }
  bool takes_sums(int) const override { return of(0).takes_sums(0); }
  bool recomputes() const override { return true; }

  // Whose members these are: x with the sum and the ReLU, and z.
  const BatchNormBase& of(int side) const { return static_cast<BatchNormBase&>(*members_[side]); }

  void setup(Context& context, const std::vector<Shape>& bottoms) override {
    members_[0] = joined_member(*this, "BatchNorm+Scale+Sum+ReLU");
    members_[0]->setup(context, bottoms);
    members_[1] = joined_member(*this, "BatchNorm+Scale");
    members_[1]->setup(context, {bottoms[1]});
    for (const auto& member : members_) {
      for (const ParameterSpec& spec : member->parameters())
        add_parameter(spec.shape, *spec.filler, spec.learned);
    }
  }

  bool worth_joining(const Context& context, const std::vector<Shape>& bottoms,
                     Precision precision) const override {
    const Shape& x = bottoms[0];
    const auto bytes = static_cast<int64_t>(size_of(storage_of(precision, DType::f32)));
    // Exact float32 is in plain order.
    return context.device() == Device::gpu && context.implementation.empty() &&
           precision != Precision::fp32 && x.axes() > 2 && x == bottoms[1] &&
           x[1] * bytes % 16 == 0 && !of(0).takes_parts();
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    Inference inference = members_[0]->infer(bottoms);
    for (const TensorSpec& spec : members_[1]->infer({bottoms[1]}).saved)
      inference.saved.push_back(spec);
    return inference;
  }

  Prepared prepare(Context& context, const Preparation& preparation) override {
    const Format format{preparation.bottom_orders[0], nullptr};
    pair_ = nullptr;
    if (!of(0).takes_parts())
      pair_ = make_batch_norm_pair(context, of(0).case_of(preparation.bottoms[0], format),
                                   preparation.storage);
    Preparation second = preparation;
    second.bottoms = {preparation.bottoms[1]};
    second.bottom_orders = {preparation.bottom_orders[1]};
    Prepared prepared = members_[0]->prepare(context, preparation);
    prepared.workspace =
        std::max(prepared.workspace, members_[1]->prepare(context, second).workspace);
    if (pair_) {
      prepared.workspace = std::max(prepared.workspace, pair_->workspace());
      if (preparation.backward) prepared.reads = {true, false, false};
      return prepared;
    }
    // What z becomes.
    prepared.top_diff_parts = 1;
    prepared.saved = {{preparation.bottoms[1], preparation.storage}};
    prepared.reads = std::nullopt;
    return prepared;
  }

  // One member's parameters, or what belongs to them.
  template <typename T>
  std::vector<T> part(const std::vector<T>& list, int side) const {
    const auto middle = list.begin() + static_cast<int64_t>(members_[0]->parameters().size());
    return side == 0 ? std::vector<T>(list.begin(), middle) : std::vector<T>(middle, list.end());
  }
  // Mean and inverse of x and of z, then signs of y.
  BatchNormSide side(int number, const std::vector<Tensor>& parameters,
                     const std::vector<Tensor>& bottom, const std::vector<Tensor>& sums,
                     const std::vector<Tensor>& saved) const {
    const size_t at = 2 * static_cast<size_t>(number);
    return {of(number).blobs(part(parameters, number)),
            bottom[static_cast<size_t>(number)],
            sums.empty() ? Tensor() : sums[static_cast<size_t>(number)],
            {saved[at], saved[at + 1], number == 0 && saved.size() > 4 ? saved[4] : Tensor()}};
  }

  void forward(Context& context, const Forward& pass) override {
    if (!pair_) return one_by_one(context, pass, &Layer::forward);
    pair_->forward(context, side(0, pass.parameters, pass.bottom, pass.bottom_sums, pass.saved),
                   side(1, pass.parameters, pass.bottom, pass.bottom_sums, pass.saved), pass.top[0],
                   pass.workspace);
  }

  void recompute(Context& context, const Forward& pass) override {
    if (!pair_) return one_by_one(context, pass, &Layer::recompute);
    pair_->recompute(context, side(0, pass.parameters, pass.bottom, {}, pass.saved),
                     side(1, pass.parameters, pass.bottom, {}, pass.saved), pass.top[0],
                     pass.workspace);
  }

  // What z becomes, in the top's order.
  static Tensor between(const std::vector<Tensor>& saved, const Tensor& like) {
    return saved[4].reshaped(like.shape(), like.format());
  }

  void one_by_one(Context& context, const Forward& pass,
                  void (Layer::*run)(Context&, const Forward&)) const {
    Forward part_pass = pass;
    part_pass.parameters = part(pass.parameters, 1);
    part_pass.bottom = {pass.bottom[1]};
    part_pass.bottom_sums.clear();
    part_pass.top = {between(pass.saved, pass.top[0])};
    part_pass.saved = {pass.saved[2], pass.saved[3]};
    (*members_[1].*run)(context, part_pass);
    part_pass.parameters = part(pass.parameters, 0);
    part_pass.bottom = {pass.bottom[0], part_pass.top[0]};
    part_pass.top = pass.top;
    part_pass.saved = {pass.saved[0], pass.saved[1]};
    (*members_[0].*run)(context, part_pass);
  }

  void backward(Context& context, const Backward& pass) override {
    Backward parts[2] = {pass, pass};
    for (int i = 0; i < 2; ++i) {
      parts[i].parameters = part(pass.parameters, i);
      parts[i].parameter_diff = part(pass.parameter_diff, i);
      parts[i].accumulate = part(pass.accumulate, i);
    }
    if (pair_) {
      BatchNormGradients gradients[2];
      for (int i = 0; i < 2; ++i) {
        gradients[i].dx = pass.bottom_diff[static_cast<size_t>(i)];
        of(i).parameter_gradients(parts[i], false, gradients[i]);
      }
      return pair_->backward(context, side(0, pass.parameters, pass.bottom, {}, pass.saved),
                             side(1, pass.parameters, pass.bottom, {}, pass.saved),
                             pass.top_diff[0],
                             pass.more_top_diff.empty() ? Tensor() : pass.more_top_diff[0],
                             gradients[0], gradients[1], pass.workspace);
    }
    // What z became is not read any more: the gradient behind it takes its place.
    const Tensor dz = between(pass.saved, pass.top_diff[0]);
    parts[0].bottom_diff = {pass.bottom_diff[0], dz};
    parts[0].saved = {pass.saved[0], pass.saved[1]};
    members_[0]->backward(context, parts[0]);
    parts[1].bottom = {pass.bottom[1]};
    parts[1].top_diff = {dz};
    parts[1].bottom_diff = {pass.bottom_diff[1]};
    parts[1].saved = {pass.saved[2], pass.saved[3]};
    members_[1]->backward(context, parts[1]);
  }

  BackwardReads reads() const override { return {true, true}; }

  std::unique_ptr<Layer> members_[2];
  std::unique_ptr<BatchNormPair> pair_;
};

// A name that is no identifier.
[[maybe_unused]] const bool joined_type = LayerRegistry::add(
    "BatchNorm+Scale+BatchNorm+Scale+Sum+ReLU",
    {[]() -> std::unique_ptr<Layer> { return std::make_unique<BatchNormPairLayer>(); }, __FILE__});

}  // namespace
}  // namespace crema
