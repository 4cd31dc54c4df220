// RNN: a simple recurrent net along the steps of sequences.
//   h[t] = tanh(w_x x[t] + b + w_s x_static + w_h cont[t] h[t-1]);  y[t] = tanh(w_o h[t] + b_o)
// Shapes: x (T, N, inputs...), cont (T, N), 0 where a sequence begins, else 1, and x_static (N,
// ...) if given; y (T, N, num_output), h has as many units. With expose_hidden: h before the first
// step is one more bottom and that after the last one more top, (1, N, num_output); otherwise it is
// kept from one forward pass to the next, initially zero.
// Parameters: w_x, b, w_s if there is x_static, w_h, w_o, b_o.
// Gradient: back along the steps of this batch; none for cont and the state.
#include "kernels/pointwise/pointwise.h"
#include "kernels/pointwise/pointwise_math.h"
#include "layers/recurrent/recurrent_layer.h"
#include "proto/params/recurrent.pb.h"

namespace crema {
namespace {

struct Squash {
  template <typename T>
  CREMA_HD T operator()(T x) const {
    return tanh_of(x);
  }
};

struct SquashGradient {
  template <typename T>
  CREMA_HD T operator()(T dy, T y) const {
    return dy * (1 - y * y);
  }
};

template <typename T>
struct RnnStep {
  int64_t hidden;
  T* h;  // in: the pre-activation
  Continues<T> continues_next;
  T *hidden_next, *last_h;  // null: not at this step
  CREMA_HD void operator()(int64_t n, int64_t d) const {
    const int64_t at = n * hidden + d;
    const T value = tanh_of(h[at]);
    h[at] = value;
    if (hidden_next) hidden_next[at] = continues_next(n) * value;
    if (last_h) last_h[at] = value;
  }
};

template <typename T>
struct RnnStepBackward {
  int64_t hidden;
  const T* h;
  Continues<T> continues_next;
  const T *dh, *dh_next;  // of the outputs; of the next step, null at the last
  T* diff;
  CREMA_HD void operator()(int64_t n, int64_t d) const {
    const int64_t at = n * hidden + d;
    const T sum = dh[at] + (dh_next ? continues_next(n) * dh_next[at] : T(0));
    diff[at] = SquashGradient()(sum, h[at]);
  }
};

class RnnLayer : public RecurrentLayer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::recurrent, .learned = 5};

  RnnLayer() : RecurrentLayer(1, 1) {}

 private:
  int output_weights() const { return hidden_weights_ + 1; }
  int output_bias() const { return hidden_weights_ + 2; }
  LayerTraits traits() const override {
    LayerTraits traits = RecurrentLayer::traits();
    traits.reads = {true, true};
    return traits;
  }

  void setup(Context& context, const std::vector<Shape>& bottoms) override {
    RecurrentLayer::setup(context, bottoms);
    add_parameter({hidden_, hidden_}, params<RecurrentParameter>().weight_filler());
    add_parameter({hidden_}, params<RecurrentParameter>().bias_filler());
  }

  struct RnnState : State {
    std::unique_ptr<LinearKernel> output_product;
  };

  Prepared prepare(Context& context, const Preparation& preparation) const override {
    const Extents x = extents(preparation.bottoms[0]);
    DenseCase c;
    c.rows = x.steps * x.sequences;
    c.inputs = c.outputs = hidden_;
    c.bias = true;
    c.backward_data = preparation.backward;
    c.backward_weights = preparation.parameter_needs_diff[output_weights()];
    c.dtype = preparation.dtype;
    c.precision = product_precision(preparation);
    auto state = std::make_unique<RnnState>();
    state->output_product = make_dense(context, c);
    const size_t workspace = state->output_product->workspace();
    return RecurrentLayer::prepare(context, preparation, std::move(state), workspace);
  }

  void step(Context& context, const Forward& pass, int64_t t) const override {
    const RnnState& s = state_of<RnnState>(pass);
    on(pass.top[0], [&]<typename T>() {
      const bool more = !s.last(t);
      parallel_rows(context, s.x.sequences, s.hidden,
                    RnnStep<T>{s.hidden, sums_at<T>(s, pass.saved[kSums], t),
                               more ? continues<T>(pass, t + 1) : Continues<T>{},
                               more ? units_at<T>(s, pass.saved[kHiddenBefore], t + 1) : nullptr,
                               more ? nullptr : state_after<T>(pass, 0)});
    });
  }

  void end(Context& context, const Forward& pass) const override {
    const RnnState& s = state_of<RnnState>(pass);
    s.output_product->forward(context, pass.saved[kSums], pass.parameters[output_weights()],
                              pass.parameters[output_bias()], pass.top[0], pass.workspace);
    pointwise(context, Squash{}, pass.top[0], pass.top[0]);
  }

  void begin_backward(Context& context, const Backward& pass) const override {
    const RnnState& s = state_of<RnnState>(pass);
    // Stores the gradient of the outputs' pre-activations, which is used up before the steps begin.
    const Tensor diff = part(pass, kSumsDiff), dh = part(pass, kOutputDiff);
    pointwise(context, SquashGradient{}, diff, pass.top_diff[0], pass.top[0]);
    if (const Tensor& dw = pass.parameter_diff[output_weights()])
      s.output_product->backward_weights(context, pass.saved[kSums], diff, dw, Tensor(),
                                         pass.accumulate[output_weights()], false, pass.workspace);
    if (const Tensor& db = pass.parameter_diff[output_bias()]) {
      on(diff, [&]<typename T>() {
        bias_gradient(context, s.x.steps * s.x.sequences, s.hidden, 1, diff.data<T>(), db.data<T>(),
                      pass.accumulate[output_bias()]);
      });
    }
    s.output_product->backward_data(context, diff, pass.parameters[output_weights()], dh,
                                    pass.workspace);
  }

  void step_backward(Context& context, const Backward& pass, int64_t t) const override {
    const RnnState& s = state_of<RnnState>(pass);
    on(pass.saved[kSums], [&]<typename T>() {
      const bool more = !s.last(t);
      parallel_rows(context, s.x.sequences, s.hidden,
                    RnnStepBackward<T>{s.hidden, sums_at<T>(s, pass.saved[kSums], t),
                                       more ? continues<T>(pass, t + 1) : Continues<T>{},
                                       units_at<T>(s, part(pass, kOutputDiff), t),
                                       more ? part(pass, kHiddenDiff).template data<T>() : nullptr,
                                       sums_at<T>(s, part(pass, kSumsDiff), t)});
    });
  }

  int64_t multiply_adds(const std::vector<Shape>& bottoms,
                        const std::vector<Shape>& tops) const override {
    return RecurrentLayer::multiply_adds(bottoms, tops) + tops[0].count() * hidden_;
  }
};

}  // namespace
REGISTER_LAYER(RNN, RnnLayer);
}  // namespace crema
