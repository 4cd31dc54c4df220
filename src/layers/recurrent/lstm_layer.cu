// LSTM: long short-term memory along the steps of sequences; and Lstm, its form in forks.
//   i, f, o = sigmoid, g = tanh of the gates' pre-activations
//     w_x x[t] + b + w_s x_static + w_h cont[t] h[t-1]
//   c[t] = cont[t] f c[t-1] + i g;  h[t] = o tanh(c[t])
// Shapes: x (T, N, inputs...), cont (T, N), 0 where a sequence begins, else 1, and x_static (N,
// ...) if given; y = h (T, N, num_output). With expose_hidden: h and c before the first step are
// two more bottoms and those after the last two more tops, (1, N, num_output); otherwise they are
// kept from one forward pass to the next, initially zero.
// Parameters, in rows i, f, o, g of num_output each: w_x, b, w_s if there is x_static, w_h.
// Gradient: back along the steps of this batch; none for cont and the states.
//
// Lstm: x is (T, N, inputs), or with batch_size N or another number of axes (T N, inputs...), which
// gives y (T N, num_output). Without cont (T N values) every batch begins with new sequences. A
// third bottom has no effect, as in its fork.
// Parameters: w_x, w_h, b. clipping_threshold clips the gradients of the gates' pre-activations.
// LstmAttention (MyCaffe), without attention, is the same; its x always has axes (T, N, inputs...).
#include "layers/recurrent/lstm_layer.h"

#include "kernels/pointwise/pointwise.h"
#include "kernels/sequence/lstm_cell.h"
#include "proto/layer.pb.h"
#include "proto/params/recurrent.pb.h"

namespace crema {
namespace {

template <typename T>
struct Step {
  int64_t hidden;
  const T *sums, *c_before;
  Continues<T> continues, continues_next;
  T *h, *c;
  T* hidden_next;      // null at the last step
  T *last_h, *last_c;  // null before the last step
  CREMA_HD void operator()(int64_t n, int64_t d) const {
    const int64_t at = n * hidden + d;
    const LstmCell<T> cell(sums + n * 4 * hidden + d, hidden, c_before[at], continues(n));
    const T value = cell.h();
    h[at] = value;
    c[at] = cell.c;
    if (hidden_next) hidden_next[at] = continues_next(n) * value;
    if (!last_h) return;
    last_h[at] = value;
    last_c[at] = cell.c;
  }
};

template <typename T>
struct StepBackward {
  int64_t hidden;
  const T *sums, *c_before;
  Continues<T> continues, continues_next;
  const T *dy, *dh_next;  // dh_next: null at the last step
  T* dc;                  // state of this step, then of the previous one
  T* diff;
  T bound;  // 0: none
  CREMA_HD T bounded(T value) const {
    if (bound <= 0) return value;
    return value > bound ? bound : (value < -bound ? -bound : value);
  }
  CREMA_HD void operator()(int64_t n, int64_t d) const {
    const int64_t at = n * hidden + d;
    const T dh = dy[at] + (dh_next ? continues_next(n) * dh_next[at] : T(0));
    const LstmCell<T> cell(sums + n * 4 * hidden + d, hidden, c_before[at], continues(n));
    const LstmGradient<T> gradient = cell.gradient(dh, dh_next ? dc[at] : T(0));
    dc[at] = gradient.c_before;
    T* out = diff + n * 4 * hidden + d;
    out[0] = bounded(gradient.i);
    out[hidden] = bounded(gradient.f);
    out[2 * hidden] = bounded(gradient.o);
    out[3 * hidden] = bounded(gradient.g);
  }
};

class ForkedLstmLayer : public LstmLayer {
 protected:
  struct Settings {
    const char* message;
    int64_t hidden;
    float bound;
    const FillerParameter *weights, *bias;
    int64_t sequences = 0;  // if the first axis merges steps and sequences; 0: it has steps only
  };
  // For bottoms of this shape.
  virtual Settings settings(const Shape& x) const {
    const LSTMParameter& p = params<LSTMParameter>();
    const bool steps_apart = x.axes() == 3 && !p.has_batch_size();
    require(p.batch_size() > 0, "lstm_param has batch_size: 0, but must be positive");
    return {"lstm_param",       p.num_output(),   p.clipping_threshold(),
            &p.weight_filler(), &p.bias_filler(), steps_apart ? 0 : p.batch_size()};
  }

 private:
  float bound() const override { return bound_; }
  Arity bottoms() const override { return {1, 3}; }
  Arity tops() const override { return {1, 1}; }
  bool reads_values(int bottom) const override { return bottom == 0 || bottom == 1; }
  bool independent_along(int, int axis, const std::vector<Shape>& bottoms) const override {
    return axis == 1 && settings(bottoms[0]).sequences == 0;
  }
  bool differentiable(int bottom) const override { return bottom == 0; }

  Extents extents(const Shape& x) const override {
    const int64_t sequences = settings(x).sequences;
    if (sequences == 0) return {x[0], x[1], x.count(2)};
    return {x[0] / sequences, sequences, x.count(1)};
  }

  void setup(Context& context, const std::vector<Shape>& bottoms) override {
    if (bottoms.size() > 2) {
      context.log().warning(cat(name(), ": the third bottom, \"", message().bottom(2),
                                "\", has no effect; Concat joins it to the first one"));
    }
    require(bottoms[0].axes() >= 2, "the bottom must have an axis of steps and one of inputs, but ",
            "its shape is ", bottoms[0].brief());
    const Settings settings = this->settings(bottoms[0]);
    require(settings.hidden > 0, settings.message,
            " has no num_output (or 0): how many hidden units should there be?",
            has_params<RecurrentParameter>() ? " With recurrent_param the type is \"LSTM\"" : "");
    hidden_ = settings.hidden;
    bound_ = settings.bound;
    hidden_weights_ = 1;
    bias_ = 2;
    add_parameter({gates_ * hidden_, extents(bottoms[0]).inputs}, *settings.weights);
    add_parameter({gates_ * hidden_, hidden_}, *settings.weights);
    add_parameter({gates_ * hidden_}, *settings.bias);
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape& x = bottoms[0];
    const bool steps_apart = settings(x).sequences == 0;
    const Extents extents = this->extents(x);
    require(steps_apart || x[0] % extents.sequences == 0, "the first axis of the bottom (",
            x.brief(), ") holds the steps of all ", extents.sequences,
            " sequences of a batch, so batch_size must divide it");
    require(extents.inputs == parameters()[input_weights_].shape[1], "the bottom has shape ",
            x.brief(), ", that is ", extents.inputs,
            " values a step, but the weights were made for ",
            parameters()[input_weights_].shape[1]);
    const int64_t steps = extents.steps * extents.sequences;
    require(bottoms.size() == 1 || bottoms[1].count() == steps, "the second bottom says for each ",
            "step of each sequence whether it goes on, so it must have ", steps,
            " values, but its shape is ", bottoms.size() > 1 ? bottoms[1].brief() : "");
    Shape y = {steps, hidden_};
    if (steps_apart) y = {x[0], x[1], hidden_};
    return {{y}, saved(extents, hidden_)};
  }

  float bound_ = 0;
};

class LstmAttentionLayer final : public ForkedLstmLayer {
  Arity bottoms() const override { return {1, 2}; }
  Settings settings(const Shape& x) const override {
    const LSTMAttentionParameter& p = params<LSTMAttentionParameter>();
    require(!p.enable_attention(), "enable_attention is true, but only false is supported: in its ",
            "program the gradient through the attention is not that of its outputs");
    require(p.num_output_ip() == 0, "num_output_ip is ", p.num_output_ip(),
            ", but only 0 is supported: put an InnerProduct with axis: 2 after it");
    require(!p.enable_clockwork_forgetgate_bias(), "enable_clockwork_forgetgate_bias is true, but ",
            "only false is taken");
    require(x.axes() > 2, "the bottom has shape ", x.brief(),
            ", but needs axes of steps, sequences and inputs");
    static const FillerParameter xavier = [] {
      FillerParameter filler;
      filler.set_type("xavier");
      return filler;
    }();
    static const FillerParameter tenth = [] {
      FillerParameter filler;
      filler.set_value(0.1f);
      return filler;
    }();
    return {"lstm_attention_param", p.num_output(), p.clipping_threshold(),
            p.has_weight_filler() ? &p.weight_filler() : &xavier,
            p.has_bias_filler() ? &p.bias_filler() : &tenth};
  }
};

}  // namespace

void LstmLayer::step(Context& context, const Forward& pass, int64_t t) const {
  const State& s = state_of<State>(pass);
  on(pass.top[0], [&]<typename T>() {
    const bool more = !s.last(t);
    const Tensor& cells = pass.saved[kCells];
    const Step<T> body{s.hidden,
                       sums_at<T>(s, pass.saved[kSums], t),
                       units_at<T>(s, cells, t),
                       continues<T>(pass, t),
                       more ? continues<T>(pass, t + 1) : Continues<T>{},
                       units_at<T>(s, pass.top[0], t),
                       units_at<T>(s, cells, t + 1),
                       more ? units_at<T>(s, pass.saved[kHiddenBefore], t + 1) : nullptr,
                       more ? nullptr : state_after<T>(pass, 0),
                       more ? nullptr : state_after<T>(pass, 1)};
    parallel_rows(context, s.x.sequences, s.hidden, body);
  });
}

void LstmLayer::step_backward(Context& context, const Backward& pass, int64_t t) const {
  const State& s = state_of<State>(pass);
  on(pass.saved[kSums], [&]<typename T>() {
    const bool more = !s.last(t);
    const StepBackward<T> body{s.hidden,
                               sums_at<T>(s, pass.saved[kSums], t),
                               units_at<T>(s, pass.saved[kCells], t),
                               continues<T>(pass, t),
                               more ? continues<T>(pass, t + 1) : Continues<T>{},
                               units_at<T>(s, pass.top_diff[0], t),
                               more ? part(pass, kHiddenDiff).template data<T>() : nullptr,
                               part(pass, kCellDiff).template data<T>(),
                               sums_at<T>(s, part(pass, kSumsDiff), t),
                               static_cast<T>(bound())};
    parallel_rows(context, s.x.sequences, s.hidden, body);
  });
}

REGISTER_LAYER(LSTM, LstmLayer);
REGISTER_LAYER(Lstm, ForkedLstmLayer);
REGISTER_LAYER(LstmAttention, LstmAttentionLayer);
}  // namespace crema
