// Base of the recurrent layers: shapes, weights, the state kept from one forward pass to the next,
// and the matrix products, which a subclass may replace. A subclass gives the pointwise part of a
// step.
#pragma once

#include "base/host_device.h"
#include "kernels/conv/dense.h"
#include "layers/layer.h"
#include "tensor/part.h"

namespace crema {

// Whether each sequence continues at a step: 0 where one begins, else 1.
template <typename T>
struct Continues {
  const T* at;  // per sequence; null: `always` for all
  T always;
  CREMA_HD T operator()(int64_t sequence) const { return at ? at[sequence] : always; }
};

class RecurrentLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::recurrent, .learned = 3};

 protected:
  // gates: pre-activations per hidden unit. states: 1 (h) or 2 (h and c).
  RecurrentLayer(int gates, int states) : gates_(gates), states_(states) {}

  // The first bottom, seen as (steps, sequences, inputs).
  struct Extents {
    int64_t steps, sequences, inputs;
  };
  virtual Extents extents(const Shape& x) const { return {x[0], x[1], x.count(2)}; }

  // As in layers with a RecurrentParameter.
  Arity bottoms() const override { return {2 + exposed(), 3 + exposed()}; }
  Arity tops() const override { return {1 + exposed(), 1 + exposed()}; }
  bool differentiable(int bottom) const override {
    return bottom == 0 || (bottom == 2 && has_fixed());
  }
  // Sequences are samples, their steps are not.
  bool independent_along(int bottom, int axis, const std::vector<Shape>&) const override {
    return axis == (bottom == 2 && has_fixed() ? 0 : 1);
  }
  void setup(Context& context, const std::vector<Shape>& bottoms) override;
  Inference infer(const std::vector<Shape>& bottoms) const override;

  LayerTraits traits() const override { return {.reads = {true, false}}; }
  // Sizes and kernels of a plan.
  struct State : LayerState {
    Extents x = {};
    int64_t hidden = 0;  // values of a sequence's state
    DType dtype = DType::f32;
    Precision precision = Precision::fp32;
    size_t products_workspace = 0;
    std::unique_ptr<LinearKernel> input_product, fixed_product, hidden_product;
    bool last(int64_t t) const { return t + 1 == x.steps; }
  };
  Prepared prepare(Context& context, const Preparation& preparation) const override;
  void forward(Context& context, const Forward& pass) const override;
  void backward(Context& context, const Backward& pass) const override;
  int64_t multiply_adds(const std::vector<Shape>& bottoms,
                        const std::vector<Shape>& tops) const override;

  // Computes h of step t from its pre-activations, and writes it to the top and into
  // saved[kHiddenBefore] of step t + 1 or, at the last step, into state_after(); c likewise.
  virtual void step(Context& context, const Forward& pass, int64_t t) const = 0;
  // Writes the gradient of the pre-activations of step t. At the last step no gradient flows back
  // along the sequences; before that it is in the parts kHiddenDiff and kCellDiff.
  virtual void step_backward(Context& context, const Backward& pass, int64_t t) const = 0;
  // Called after all steps of forward, and before those of backward.
  virtual void end(Context&, const Forward&) const {}
  virtual void begin_backward(Context&, const Backward&) const {}

  // Compute the gates' pre-activations, here by matrix products. Before all steps: saved[kSums]
  // from the bottoms. At each step: adds the term of saved[kHiddenBefore].
  virtual void input_sums(Context& context, const Forward& pass) const;
  virtual void hidden_sums(Context& context, const Forward& pass, int64_t t) const;
  // From the gradient of the pre-activations of step t to the parts kHiddenDiff and kCellDiff of
  // the step before; the latter already has the gradient through the cell.
  virtual void hidden_gradient(Context& context, const Backward& pass, int64_t t) const;
  // Gradients of bottoms and parameters, once the part kSumsDiff has all steps.
  virtual void outer_gradients(Context& context, const Backward& pass) const;

  // The axes of a state after that of the sequences.
  virtual Shape unit_shape(const Shape&) const { return {hidden_}; }
  // Error if x or x_static have other extents than the weights were made for.
  virtual void check_inputs(const std::vector<Shape>& bottoms) const;

  // Saved by infer(). kCells only with two states: c before each step and after the last. kState,
  // followed by that of c: h from one pass to the next, unless states are exposed.
  enum Saved { kSums, kHiddenBefore, kCells, kState = 3 };
  std::vector<TensorSpec> saved(const Extents& x, int64_t hidden) const;

  // Parts of the workspace. Backward: gradients of the pre-activations of all steps, of h and c of
  // the previous step, and (with one gate) of all h as the outputs read them.
  enum Part { kFixedSums, kSumsDiff, kHiddenDiff, kCellDiff, kOutputDiff, kEnd };
  template <typename Pass>
  Tensor part(const Pass& pass, Part part) const {
    const State& s = state_of<State>(pass);
    return part_of(pass.workspace, start_of(s, part), {count_of(s, part)}, s.dtype);
  }

  // The same for a state that a subclass may have added to, with workspace for its products.
  Prepared prepare(Context& context, const Preparation& preparation, std::unique_ptr<State> state,
                   size_t products_workspace) const;
  // Only sizes and the workspace: `products_workspace` bytes, followed by the parts.
  Prepared lay_out(const Preparation& preparation, std::unique_ptr<State> state,
                   size_t products_workspace) const;
  // kFixedSums: the gradients of the pre-activations, summed over the steps.
  Tensor fixed_sums_diff(Context& context, const Backward& pass) const;

  bool exposes() const;  // states are bottoms and tops
  int exposed() const { return exposes() ? states_ : 0; }
  bool has_fixed() const { return fixed_weights_ >= 0; }

  template <typename T>
  const T* state_before(const Forward& pass, int state) const {
    return exposes() ? pass.bottom[2 + has_fixed() + state].data<T>()
                     : pass.saved[kState + state].data<T>();
  }
  template <typename T>
  T* state_after(const Forward& pass, int state) const {
    return (exposes() ? pass.top[1 + state] : pass.saved[kState + state]).template data<T>();
  }
  template <typename T, typename Pass>
  Continues<T> continues(const Pass& pass, int64_t t) const {
    const bool given = pass.bottom.size() > 1;
    const int64_t sequences = state_of<State>(pass).x.sequences;
    return {given ? pass.bottom[1].template data<T>() + t * sequences : nullptr, T(t > 0)};
  }
  template <typename T>
  T* sums_at(const State& s, const Tensor& all, int64_t t) const {
    return all.data<T>() + t * s.x.sequences * gates_ * s.hidden;
  }
  template <typename T>
  static T* units_at(const State& s, const Tensor& all, int64_t t) {
    return all.data<T>() + t * s.x.sequences * s.hidden;
  }

  const int gates_, states_;
  int64_t hidden_ = 0, fixed_inputs_ = 0;
  // Indices of parameters.
  int input_weights_ = 0, bias_ = 1, fixed_weights_ = -1, hidden_weights_ = 2;

  // For products: their operands are float32.
  static Precision product_precision(const Preparation& preparation) {
    return is_half(preparation.precision) ? Precision::tf32 : preparation.precision;
  }

 private:
  void fixed_gradients(Context& context, const Backward& pass) const;
  int64_t count_of(const State& s, Part part) const;
  size_t start_of(const State& s, Part part) const;
};

}  // namespace crema
