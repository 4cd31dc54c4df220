// LSTM: long short-term memory along the steps of sequences; and Lstm, its form in forks.
//   i, f, o = sigmoid, g = tanh of the gates' sums  w_x x[t] + b + w_s x_static + w_h cont[t]
//   h[t-1] c[t] = cont[t] f c[t-1] + i g;  h[t] = o tanh(c[t])
// Shapes: x (T, N, inputs...), cont (T, N), 0 where a sequence begins, else 1, and x_static
// (N, ...) where given; y = h (T, N, num_output). With expose_hidden: h and c before the first step
// come as two more bottoms and those after the last go to two more tops, (1, N, num_output); else
// they stay from one forward pass to the next, zero at first.
// Parameters, in rows i, f, o, g of num_output each: w_x, b, w_s where there is x_static, w_h.
// Gradient: back along the steps of this batch; none for cont and the states.
//
// Lstm: x is (T, N, inputs), or with batch_size N or another number of axes (T N, inputs...), which
// gives y (T N, num_output). Without cont (T N values) every batch begins with new sequences.
// Parameters: w_x, w_h, b. clipping_threshold bounds the gradients of the gates' sums.
#include "layers/lstm_layer.h"

#include "kernels/lstm_cell.h"
#include "kernels/pointwise.h"
#include "proto/params/recurrent.pb.h"

namespace crema {
namespace {

template <typename T>
struct Step {
  int64_t hidden;
  const T *sums, *c_before;
  GoesOn<T> goes_on, goes_on_next;
  T *h, *c;
  T* hidden_next;      // null at the last step
  T *last_h, *last_c;  // null before it
  CREMA_HD void operator()(int64_t n, int64_t d) const {
    const int64_t at = n * hidden + d;
    const LstmCell<T> cell(sums + n * 4 * hidden + d, hidden, c_before[at], goes_on(n));
    const T value = cell.h();
    h[at] = value;
    c[at] = cell.c;
    if (hidden_next) hidden_next[at] = goes_on_next(n) * value;
    if (!last_h) return;
    last_h[at] = value;
    last_c[at] = cell.c;
  }
};

template <typename T>
struct StepBackward {
  int64_t hidden;
  const T *sums, *c_before;
  GoesOn<T> goes_on, goes_on_next;
  const T *dy, *dh_next;  // dh_next: null at the last step
  T* dc;                  // of this step, then of the one before
  T* diff;
  T bound;  // 0: none
  CREMA_HD T bounded(T value) const {
    if (bound <= 0) return value;
    return value > bound ? bound : (value < -bound ? -bound : value);
  }
  CREMA_HD void operator()(int64_t n, int64_t d) const {
    const int64_t at = n * hidden + d;
    const T dh = dy[at] + (dh_next ? goes_on_next(n) * dh_next[at] : T(0));
    const LstmCell<T> cell(sums + n * 4 * hidden + d, hidden, c_before[at], goes_on(n));
    const LstmGradient<T> gradient = cell.gradient(dh, dh_next ? dc[at] : T(0));
    dc[at] = gradient.c_before;
    T* out = diff + n * 4 * hidden + d;
    out[0] = bounded(gradient.i);
    out[hidden] = bounded(gradient.f);
    out[2 * hidden] = bounded(gradient.o);
    out[3 * hidden] = bounded(gradient.g);
  }
};

class ForkedLstmLayer final : public LstmLayer {
  const LSTMParameter& p() const { return params<LSTMParameter>(); }
  float bound() const override { return p().clipping_threshold(); }
  Arity bottoms() const override { return {1, 2}; }
  Arity tops() const override { return {1, 1}; }
  bool differentiable(int bottom) const override { return bottom == 0; }
  bool steps_apart(const Shape& x) const { return x.axes() == 3 && !p().has_batch_size(); }

  Extents extents(const Shape& x) const override {
    if (steps_apart(x)) return {x[0], x[1], x[2]};
    const int64_t sequences = p().batch_size();
    return {x[0] / sequences, sequences, x.count(1)};
  }

  void setup(Context&, const std::vector<Shape>& bottoms) override {
    require(p().num_output() > 0, "lstm_param has no num_output (or 0): how many hidden units ",
            "shall there be?",
            has_params<RecurrentParameter>() ? " With recurrent_param the type is \"LSTM\"" : "");
    require(p().batch_size() > 0, "lstm_param has batch_size: 0, but must be positive");
    require(bottoms[0].axes() >= 2, "the bottom must have an axis of steps and one of inputs, but ",
            "its shape is ", bottoms[0].brief());
    hidden_ = p().num_output();
    hidden_weights_ = 1;
    bias_ = 2;
    add_parameter({gates_ * hidden_, extents(bottoms[0]).inputs}, p().weight_filler());
    add_parameter({gates_ * hidden_, hidden_}, p().weight_filler());
    add_parameter({gates_ * hidden_}, p().bias_filler());
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape& x = bottoms[0];
    const Extents extents = this->extents(x);
    require(steps_apart(x) || x[0] % extents.sequences == 0, "the first axis of the bottom (",
            x.brief(), ") holds the steps of all ", extents.sequences,
            " sequences of a batch, so batch_size must divide it");
    require(extents.inputs == parameters()[input_weights_].shape[1], "the bottom has shape ",
            x.brief(), ", that is ", extents.inputs,
            " values a step, but the weights were made for ",
            parameters()[input_weights_].shape[1]);
    const int64_t steps = extents.steps * extents.sequences;
    require(bottoms.size() == 1 || bottoms[1].count() == steps, "the second bottom says for each ",
            "step of each sequence whether it goes on, so it must have ", steps,
            " values, but its shape is ", bottoms.back().brief());
    Shape y = {steps, hidden_};
    if (steps_apart(x)) y = {x[0], x[1], hidden_};
    return {{y}, saved(extents, hidden_)};
  }
};

}  // namespace

void LstmLayer::step(Context& context, const Forward& pass, int64_t t) {
  on(pass.top[0], [&]<typename T>() {
    const bool more = !last(t);
    const Tensor& cells = pass.saved[kCells];
    const Step<T> body{hidden_,
                       sums_at<T>(pass.saved[kSums], t),
                       units_at<T>(cells, t),
                       goes_on<T>(pass, t),
                       more ? goes_on<T>(pass, t + 1) : GoesOn<T>{},
                       units_at<T>(pass.top[0], t),
                       units_at<T>(cells, t + 1),
                       more ? units_at<T>(pass.saved[kHiddenBefore], t + 1) : nullptr,
                       more ? nullptr : state_after<T>(pass, 0),
                       more ? nullptr : state_after<T>(pass, 1)};
    parallel_rows(context, x_.sequences, hidden_, body);
  });
}

void LstmLayer::step_backward(Context& context, const Backward& pass, int64_t t) {
  on(pass.saved[kSums], [&]<typename T>() {
    const bool more = !last(t);
    const StepBackward<T> body{
        hidden_,
        sums_at<T>(pass.saved[kSums], t),
        units_at<T>(pass.saved[kCells], t),
        goes_on<T>(pass, t),
        more ? goes_on<T>(pass, t + 1) : GoesOn<T>{},
        units_at<T>(pass.top_diff[0], t),
        more ? part(pass.workspace, kHiddenDiff).template data<T>() : nullptr,
        part(pass.workspace, kCellDiff).template data<T>(),
        sums_at<T>(part(pass.workspace, kSumsDiff), t),
        static_cast<T>(bound())};
    parallel_rows(context, x_.sequences, hidden_, body);
  });
}

REGISTER_LAYER(LSTM, LstmLayer);
REGISTER_LAYER(Lstm, ForkedLstmLayer);
}  // namespace crema
