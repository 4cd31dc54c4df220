#include "layers/recurrent/recurrent_layer.h"

#include <algorithm>

#include "kernels/gemm/gemm.h"
#include "kernels/pointwise/pointwise.h"
#include "kernels/reduce/reduce.h"
#include "proto/params/recurrent.pb.h"
#include "tensor/part.h"

namespace crema {
namespace {

// Prepares the state before the first step: h masked for the first step, c unchanged (null:
// absent).
template <typename T>
struct Begin {
  int64_t hidden;
  Continues<T> continues;
  const T *h, *c;
  T *hidden_before, *cells;
  CREMA_HD void operator()(int64_t n, int64_t d) const {
    const int64_t at = n * hidden + d;
    hidden_before[at] = continues(n) == 0 ? T(0) : continues(n) * h[at];
    if (c) cells[at] = c[at];
  }
};

template <typename T>
struct AddToEachStep {
  const T* fixed;
  T* sums;
  int64_t columns;
  CREMA_HD void operator()(int64_t t, int64_t i) const { sums[t * columns + i] += fixed[i]; }
};

struct OverSteps {
  const void* all;
  int64_t columns;
  template <typename T>
  CREMA_HD T operator()(int64_t i, int64_t t, int64_t) const {
    return static_cast<const T*>(all)[t * columns + i];
  }
};

}  // namespace

bool RecurrentLayer::exposes() const { return params<RecurrentParameter>().expose_hidden(); }

void RecurrentLayer::setup(Context&, const std::vector<Shape>& bottoms) {
  const RecurrentParameter& p = params<RecurrentParameter>();
  require(p.num_output() > 0,
          "recurrent_param has no num_output (or 0): how many hidden units should there be?");
  require(p.num_layers() == 1, "recurrent_param has num_layers: ", p.num_layers(),
          ", but a layer holds one: write as many layers, each on the top of the one before");
  require(bottoms[0].axes() >= 3,
          "the first bottom must have the axes steps, sequences and inputs, but its shape is ",
          bottoms[0].brief());
  hidden_ = p.num_output();
  const int64_t rows = gates_ * hidden_;
  add_parameter({rows, bottoms[0].count(2)}, p.weight_filler());
  add_parameter({rows}, p.bias_filler());
  if (static_cast<int>(bottoms.size()) > 2 + exposed()) {
    require(bottoms[2].axes() >= 2,
            "the third bottom is the input that stays the same at all steps and must have the "
            "axes sequences and inputs, but its shape is ",
            bottoms[2].brief());
    fixed_inputs_ = bottoms[2].count(1);
    fixed_weights_ = 2;
    hidden_weights_ = 3;
    add_parameter({rows, fixed_inputs_}, p.weight_filler());
  }
  add_parameter({rows, hidden_}, p.weight_filler());
}

void RecurrentLayer::check_inputs(const std::vector<Shape>& bottoms) const {
  const Shape& x = bottoms[0];
  require(x.count(2) == parameters()[input_weights_].shape[1], "the bottom has shape ", x.brief(),
          ", that is ", x.count(2), " values a step, but the weights were made for ",
          parameters()[input_weights_].shape[1]);
  if (!has_fixed()) return;
  require(bottoms[2][0] == x[1] && bottoms[2].count(1) == fixed_inputs_,
          "the third bottom is the input that stays the same at all steps, so its shape must be ",
          Shape{x[1], fixed_inputs_}.brief(), ", but it is ", bottoms[2].brief());
}

Inference RecurrentLayer::infer(const std::vector<Shape>& bottoms) const {
  check_inputs(bottoms);
  const Shape &x = bottoms[0], &cont = bottoms[1];
  const Shape steps = {x[0], x[1]}, unit = unit_shape(x);
  require(cont == steps, "the second bottom says for each step of each sequence whether it goes ",
          "on, so its shape must be ", steps.brief(), ", but it is ", cont.brief());
  Shape y = steps, state = {1, x[1]};
  for (int64_t extent : unit.dims()) y.push_back(extent), state.push_back(extent);
  std::vector<Shape> tops = {y};
  for (int i = 0; i < exposed(); ++i) {
    const Shape& given = bottoms[2 + has_fixed() + i];
    require(given.count() == state.count(), "with expose_hidden the ", states_ > 1 ? "two " : "",
            "last bottoms are the state before the first step, of shape ", state.brief(),
            ", but one has shape ", given.brief());
    tops.push_back(state);
  }
  return {tops, saved(extents(x), unit.count())};
}

std::vector<TensorSpec> RecurrentLayer::saved(const Extents& x, int64_t hidden) const {
  const int64_t units = x.sequences * hidden;
  std::vector<TensorSpec> specs = {{{x.steps, units * gates_}, {}, false},
                                   {{x.steps, units}, {}, false},
                                   {{states_ > 1 ? x.steps + 1 : 0, units}, {}, false}};
  for (int i = 0; i < states_ && !exposes(); ++i) specs.push_back({{units}, {}, true});
  return specs;
}

int64_t RecurrentLayer::count_of(const State& s, Part part) const {
  const int64_t units = s.x.sequences * s.hidden;
  switch (part) {
    case kFixedSums:
      return has_fixed() ? units * gates_ : 0;
    case kSumsDiff:
      return s.x.steps * units * gates_;
    case kHiddenDiff:
      return units;
    case kCellDiff:
      return states_ > 1 ? units : 0;
    case kOutputDiff:
      return gates_ == 1 ? s.x.steps * units : 0;
    default:
      return 0;
  }
}

size_t RecurrentLayer::start_of(const State& s, Part part) const {
  size_t at = aligned(s.products_workspace);
  for (int i = 0; i < part; ++i)
    at += aligned(static_cast<size_t>(count_of(s, static_cast<Part>(i))) * size_of(s.dtype));
  return at;
}

Prepared RecurrentLayer::prepare(Context& context, const Preparation& preparation) const {
  return prepare(context, preparation, std::make_unique<State>(), 0);
}

Prepared RecurrentLayer::prepare(Context& context, const Preparation& preparation,
                                 std::unique_ptr<State> state, size_t products_workspace) const {
  const Extents x = extents(preparation.bottoms[0]);
  const std::vector<bool>& wanted = preparation.parameter_needs_diff;
  DenseCase c;
  c.rows = x.steps * x.sequences;
  c.inputs = x.inputs;
  c.outputs = gates_ * hidden_;
  c.bias = true;
  c.backward_data = preparation.bottom_needs_diff[0];
  c.backward_weights = wanted[input_weights_];
  c.dtype = preparation.dtype;
  c.precision = product_precision(preparation);
  state->input_product = make_dense(context, c);
  c.bias = false;
  c.inputs = hidden_;
  c.backward_data = false;
  c.backward_weights = wanted[hidden_weights_];
  state->hidden_product = make_dense(context, c);
  products_workspace = std::max(
      {products_workspace, state->input_product->workspace(), state->hidden_product->workspace()});
  if (has_fixed()) {
    c.rows = x.sequences;
    c.inputs = fixed_inputs_;
    c.backward_data = preparation.bottom_needs_diff[2];
    c.backward_weights = wanted[fixed_weights_];
    state->fixed_product = make_dense(context, c);
    products_workspace = std::max(products_workspace, state->fixed_product->workspace());
  }
  return lay_out(preparation, std::move(state), products_workspace);
}

Prepared RecurrentLayer::lay_out(const Preparation& preparation, std::unique_ptr<State> state,
                                 size_t products_workspace) const {
  state->x = extents(preparation.bottoms[0]);
  state->hidden = unit_shape(preparation.bottoms[0]).count();
  state->dtype = preparation.dtype;
  state->precision = preparation.precision;
  state->products_workspace = products_workspace;
  Prepared prepared;
  prepared.workspace = start_of(*state, preparation.backward ? kEnd : kSumsDiff);
  prepared.state = std::move(state);
  return prepared;
}

void RecurrentLayer::input_sums(Context& context, const Forward& pass) const {
  const State& s = state_of<State>(pass);
  s.input_product->forward(context, pass.bottom[0], pass.parameters[input_weights_],
                           pass.parameters[bias_], pass.saved[kSums], pass.workspace);
  if (!has_fixed()) return;
  const Tensor sums = part(pass, kFixedSums);
  s.fixed_product->forward(context, pass.bottom[2], pass.parameters[fixed_weights_], Tensor(), sums,
                           pass.workspace);
  on(sums, [&]<typename T>() {
    parallel_rows(context, s.x.steps, sums.count(),
                  AddToEachStep<T>{sums.data<T>(), pass.saved[kSums].data<T>(), sums.count()});
  });
}

void RecurrentLayer::hidden_sums(Context& context, const Forward& pass, int64_t t) const {
  const State& s = state_of<State>(pass);
  on(pass.saved[kSums], [&]<typename T>() {
    gemm(context,
         {.transpose_b = true,
          .m = s.x.sequences,
          .n = gates_ * s.hidden,
          .k = s.hidden,
          .beta = 1,
          .precision = s.precision},
         units_at<T>(s, pass.saved[kHiddenBefore], t),
         pass.parameters[hidden_weights_].template data<T>(), sums_at<T>(s, pass.saved[kSums], t));
  });
}

void RecurrentLayer::forward(Context& context, const Forward& pass) const {
  const State& s = state_of<State>(pass);
  input_sums(context, pass);
  on(pass.saved[kSums], [&]<typename T>() {
    const bool cells = states_ > 1;
    parallel_rows(context, s.x.sequences, s.hidden,
                  Begin<T>{s.hidden, continues<T>(pass, 0), state_before<T>(pass, 0),
                           cells ? state_before<T>(pass, 1) : nullptr,
                           pass.saved[kHiddenBefore].data<T>(), pass.saved[kCells].data<T>()});
  });
  for (int64_t t = 0; t < s.x.steps; ++t) {
    hidden_sums(context, pass, t);
    step(context, pass, t);
  }
  end(context, pass);
}

Tensor RecurrentLayer::fixed_sums_diff(Context& context, const Backward& pass) const {
  const State& s = state_of<State>(pass);
  const Tensor sums = part(pass, kFixedSums), all = part(pass, kSumsDiff);
  on(sums, [&]<typename T>() {
    parallel_sum<T>(context, {sums.count(), s.x.steps, 1}, OverSteps{all.raw(), sums.count()},
                    {sums.data<T>()});
  });
  return sums;
}

void RecurrentLayer::fixed_gradients(Context& context, const Backward& pass) const {
  const State& s = state_of<State>(pass);
  const Tensor sums = fixed_sums_diff(context, pass);
  if (const Tensor& dw = pass.parameter_diff[fixed_weights_])
    s.fixed_product->backward_weights(context, pass.bottom[2], sums, dw, Tensor(),
                                      pass.accumulate[fixed_weights_], false, pass.workspace);
  if (const Tensor& dx = pass.bottom_diff[2])
    s.fixed_product->backward_data(context, sums, pass.parameters[fixed_weights_], dx,
                                   pass.workspace);
}

void RecurrentLayer::hidden_gradient(Context& context, const Backward& pass, int64_t t) const {
  const State& s = state_of<State>(pass);
  const Tensor diff = part(pass, kSumsDiff), back = part(pass, kHiddenDiff);
  on(diff, [&]<typename T>() {
    gemm(context,
         {.m = s.x.sequences, .n = s.hidden, .k = gates_ * s.hidden, .precision = s.precision},
         sums_at<T>(s, diff, t), pass.parameters[hidden_weights_].template data<T>(),
         back.data<T>());
  });
}

void RecurrentLayer::backward(Context& context, const Backward& pass) const {
  const State& s = state_of<State>(pass);
  begin_backward(context, pass);
  for (int64_t t = s.x.steps - 1; t >= 0; --t) {
    step_backward(context, pass, t);
    if (t > 0) hidden_gradient(context, pass, t);
  }
  outer_gradients(context, pass);
}

void RecurrentLayer::outer_gradients(Context& context, const Backward& pass) const {
  const State& s = state_of<State>(pass);
  const Tensor diff = part(pass, kSumsDiff);
  on(diff, [&]<typename T>() {
    if (const Tensor& db = pass.parameter_diff[bias_])
      bias_gradient(context, s.x.steps * s.x.sequences, gates_ * s.hidden, 1, diff.data<T>(),
                    db.data<T>(), pass.accumulate[bias_]);
  });
  if (const Tensor& dw = pass.parameter_diff[input_weights_])
    s.input_product->backward_weights(context, pass.bottom[0], diff, dw, Tensor(),
                                      pass.accumulate[input_weights_], false, pass.workspace);
  if (const Tensor& dw = pass.parameter_diff[hidden_weights_])
    s.hidden_product->backward_weights(context, pass.saved[kHiddenBefore], diff, dw, Tensor(),
                                       pass.accumulate[hidden_weights_], false, pass.workspace);
  if (has_fixed()) fixed_gradients(context, pass);
  if (const Tensor& dx = pass.bottom_diff[0])
    s.input_product->backward_data(context, diff, pass.parameters[input_weights_], dx,
                                   pass.workspace);
}

int64_t RecurrentLayer::multiply_adds(const std::vector<Shape>& bottoms,
                                      const std::vector<Shape>&) const {
  const Extents x = extents(bottoms[0]);
  return x.sequences * gates_ * hidden_ * (x.steps * (x.inputs + hidden_) + fixed_inputs_);
}

}  // namespace crema
