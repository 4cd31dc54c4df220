// What layers that walk along sequences have in common: shapes, weights, the state that stays from
// one forward pass to the next, and the products of matrices, in whose place others may come. A
// subclass gives what is pointwise in a step.
#pragma once

#include "base/host_device.h"
#include "kernels/conv/dense.h"
#include "layers/layer.h"

namespace crema {

// Whether each sequence goes on at a step: 0 where one begins, else 1.
template <typename T>
struct GoesOn {
  const T* at;  // for each sequence; null: `always` for all
  T always;
  CREMA_HD T operator()(int64_t sequence) const { return at ? at[sequence] : always; }
};

class RecurrentLayer : public Layer {
 protected:
  // gates: sums for each hidden unit. states: 1 (h) or 2 (h and c).
  RecurrentLayer(int gates, int states) : gates_(gates), states_(states) {}

  // The first bottom, seen as (steps, sequences, inputs).
  struct Extents {
    int64_t steps, sequences, inputs;
  };
  virtual Extents extents(const Shape& x) const { return {x[0], x[1], x.count(2)}; }

  // As layers with a RecurrentParameter have them.
  Arity bottoms() const override { return {2 + exposed(), 3 + exposed()}; }
  Arity tops() const override { return {1 + exposed(), 1 + exposed()}; }
  bool differentiable(int bottom) const override {
    return bottom == 0 || (bottom == 2 && has_fixed());
  }
  void setup(Context& context, const std::vector<Shape>& bottoms) override;
  Inference infer(const std::vector<Shape>& bottoms) const override;

  BackwardReads reads() const override { return {true, false}; }
  Prepared prepare(Context& context, const Preparation& preparation) override;
  void forward(Context& context, const Forward& pass) override;
  void backward(Context& context, const Backward& pass) override;
  int64_t multiply_adds(const std::vector<Shape>& bottoms,
                        const std::vector<Shape>& tops) const override;

  // From the sums of step t to its h, which goes to the top, into saved[kHiddenBefore] of step
  // t + 1, or at the last step into state_after(); c likewise.
  virtual void step(Context& context, const Forward& pass, int64_t t) = 0;
  // Writes the gradient of the sums of step t. At the last step no gradient comes back along the
  // sequences, before that it lies in the parts kHiddenDiff and kCellDiff.
  virtual void step_backward(Context& context, const Backward& pass, int64_t t) = 0;
  // After all steps, and before those of backward.
  virtual void end(Context&, const Forward&) {}
  virtual void begin_backward(Context&, const Backward&) {}

  // What the gates' sums are made of, here products with matrices. Before all steps: saved[kSums]
  // from the bottoms. At a step: adds what saved[kHiddenBefore] gives.
  virtual void input_sums(Context& context, const Forward& pass);
  virtual void hidden_sums(Context& context, const Forward& pass, int64_t t);
  // From the gradient of the sums of step t to the parts kHiddenDiff and kCellDiff of the step
  // before; the latter holds already what comes through the cell.
  virtual void hidden_gradient(Context& context, const Backward& pass, int64_t t);
  // Those of bottoms and parameters, when the part kSumsDiff has all steps.
  virtual void outer_gradients(Context& context, const Backward& pass);

  // The axes of a state behind that of the sequences, hidden_ values together.
  virtual Shape unit_shape(const Shape&) const { return {hidden_}; }
  // Error where x or x_static have other extents than the weights were made for.
  virtual void check_inputs(const std::vector<Shape>& bottoms) const;

  // What infer() lets save. kCells only where there are two states: c before each step and after
  // the last. kState, and c behind it: h from one pass to the next, unless they are exposed.
  enum Saved { kSums, kHiddenBefore, kCells, kState = 3 };
  std::vector<TensorSpec> saved(const Extents& x, int64_t hidden) const;

  // Pieces of the workspace. Backward: gradients of the sums of all steps, of h and c of the step
  // before, and (where there is one gate) of all h as the outputs read them.
  enum Part { kFixedSums, kSumsDiff, kHiddenDiff, kCellDiff, kOutputDiff, kEnd };
  Tensor part(const Tensor& workspace, Part part) const;

  // The same with room in the workspace for products of the subclass.
  Prepared prepare(Context& context, const Preparation& preparation, size_t products_workspace);
  // Only the workspace: `products_workspace` bytes, and behind them the parts.
  Prepared lay_out(const Preparation& preparation, size_t products_workspace);
  // kFixedSums: the gradients of the sums, added up over the steps.
  Tensor fixed_sums_diff(Context& context, const Backward& pass);

  bool exposes() const;  // states are bottoms and tops
  int exposed() const { return exposes() ? states_ : 0; }
  bool has_fixed() const { return fixed_weights_ >= 0; }
  bool last(int64_t t) const { return t + 1 == x_.steps; }

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
  GoesOn<T> goes_on(const Pass& pass, int64_t t) const {
    const bool given = pass.bottom.size() > 1;
    return {given ? pass.bottom[1].template data<T>() + t * x_.sequences : nullptr, T(t > 0)};
  }
  template <typename T>
  T* sums_at(const Tensor& all, int64_t t) const {
    return all.data<T>() + t * x_.sequences * gates_ * hidden_;
  }
  template <typename T>
  T* units_at(const Tensor& all, int64_t t) const {
    return all.data<T>() + t * x_.sequences * hidden_;
  }

  const int gates_, states_;
  int64_t hidden_ = 0, fixed_inputs_ = 0;
  // Places of parameters.
  int input_weights_ = 0, bias_ = 1, fixed_weights_ = -1, hidden_weights_ = 2;
  // Of this plan.
  Extents x_ = {};
  DType dtype_ = DType::f32;

  // Of products: their factors are float32.
  static Precision product_precision(const Preparation& preparation) {
    return is_half(preparation.precision) ? Precision::tf32 : preparation.precision;
  }

 private:
  void fixed_gradients(Context& context, const Backward& pass);

  Precision precision_ = Precision::fp32;
  int64_t count_of(Part part) const;
  size_t start_of(Part part) const;

  size_t products_workspace_ = 0;
  std::unique_ptr<WeightedSum> input_product_, fixed_product_, hidden_product_;
};

}  // namespace crema
