// LabeledMatching and UnlabeledMatching (a fork for person search): scores of vectors against
// vectors stored in earlier passes, for labelled identities and for the others.
//   s[n,k] = sum over i of x[n,i] w[k,i];  LabeledMatching's second top is the label of n, or -1
//   if that is not a row of w
// Shapes: x (N, K...), labels (N); s (N, num_classes) or (N, queue_size), labels (N).
// Parameters: w, initially zero, and for LabeledMatching how many passes ago each row was moved,
// for UnlabeledMatching the next row to write. They are measured, not learned: backward moves them,
// unless the first has lr_mult 0. LabeledMatching: w[label] = momentum w[label] + (1 - momentum)
// x[n], one vector after the other. UnlabeledMatching: x[n] of label -1 replaces the oldest row.
// Gradient: dx = ds w, with w as it was in the forward pass; none for the labels.
#include "kernels/conv/dense.h"
#include "kernels/pointwise/pointwise.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"

namespace crema {
namespace {

// -1 if a label is not a row.
template <typename T>
struct RowOfLabel {
  const T* labels;
  int64_t rows;
  CREMA_HD int64_t operator()(int64_t n) const {
    // Truncated to an integer, as in Caffe.
    return labels[n] > T(-1) && labels[n] < T(rows) ? static_cast<int64_t>(labels[n]) : -1;
  }
};

template <typename T>
struct KnownLabel {
  RowOfLabel<T> row_of;
  T* known;
  CREMA_HD void operator()(int64_t n) const { known[n] = static_cast<T>(row_of(n)); }
};

// The first vector of each row in the batch handles all vectors of that row.
template <typename T>
struct MoveRows {
  RowOfLabel<T> row_of;
  const T* x;
  int64_t batch, inputs;
  T momentum;
  T* w;
  CREMA_HD void operator()(int64_t n, int64_t i) const {
    const int64_t row = row_of(n);
    bool first = row >= 0;
    for (int64_t before = 0; first && before < n; ++before) first = row_of(before) != row;
    if (!first) return;
    T value = w[row * inputs + i];
    for (int64_t m = n; m < batch; ++m) {
      if (row_of(m) == row) value = momentum * value + (1 - momentum) * x[m * inputs + i];
    }
    w[row * inputs + i] = value;
  }
};

template <typename T>
struct CountPasses {
  RowOfLabel<T> row_of;
  int64_t batch;
  T* passes;
  CREMA_HD void operator()(int64_t row) const {
    T now = passes[row] + 1;
    for (int64_t n = 0; n < batch; ++n) now = row_of(n) == row ? T(0) : now;
    passes[row] = now;
  }
};

template <typename T>
struct IsUnknown {
  const T* labels;
  CREMA_HD bool operator()(int64_t n) const {
    return labels[n] > T(-2) && labels[n] <= T(-1);  // -1 after truncation to an integer
  }
};

// The row to write next. Snapshots set it too, so it may have any value.
template <typename T>
CREMA_HD int64_t first_row(T next, int64_t rows) {
  return next >= 0 && next < T(rows) ? static_cast<int64_t>(next) : 0;
}

template <typename T>
struct FillQueue {
  IsUnknown<T> unknown;
  const T *x, *next;
  int64_t batch, inputs, rows;
  T* w;
  CREMA_HD void operator()(int64_t n, int64_t i) const {
    if (!unknown(n)) return;
    int64_t before = 0, behind = 0;
    for (int64_t m = 0; m < batch; ++m) {
      before += m < n && unknown(m);
      behind += m > n && unknown(m);
    }
    if (behind >= rows) return;  // a later vector overwrites it
    const int64_t row = (first_row(*next, rows) + before) % rows;
    w[row * inputs + i] = x[n * inputs + i];
  }
};

template <typename T>
struct MoveNext {
  IsUnknown<T> unknown;
  int64_t batch, rows;
  T* next;
  CREMA_HD void operator()(int64_t) const {
    int64_t at = first_row(*next, rows);
    for (int64_t n = 0; n < batch; ++n) at += unknown(n);
    *next = static_cast<T>(at % rows);
  }
};

class MatchingLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {
      .kind = LayerKind::dense, .labels = LabelKind::classes, .in_use = InUse::left_out};

 protected:
  explicit MatchingLayer(int tops) : tops_(tops) {}

 private:
  // The number of rows of w.
  virtual int64_t rows() const = 0;
  virtual void remember(Context& context, const Backward& pass) const = 0;

  Arity bottoms() const override { return {2, 2}; }
  Arity tops() const override { return {tops_, tops_}; }
  bool differentiable(int bottom) const override { return bottom == 0; }
  LayerTraits traits() const override { return {.reads = {true, false}}; }

  void setup(Context&, const std::vector<Shape>& bottoms) override {
    add_parameter({rows(), bottoms[0].count(1)}, FillerParameter::default_instance(), false);
    add_parameter({tops_ == 2 ? rows() : 1}, FillerParameter::default_instance(), false);
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape& x = bottoms[0];
    require(x.axes() > 0, "the first bottom must be vectors (N, K...), but it is a scalar");
    require(x.count(1) == parameters()[0].shape[1], "the bottom has shape ", x.brief(),
            ", that is vectors of ", x.count(1), " values, but the remembered ones have ",
            parameters()[0].shape[1]);
    require(bottoms[1].count() == x[0], "there must be one label for each of ", x[0], " vectors (",
            x.brief(), "), but the labels are ", bottoms[1].brief());
    std::vector<Shape> tops = {{x[0], rows()}};
    if (tops_ == 2) tops.push_back(bottoms[1]);
    return {tops, {}};
  }

  struct State : LayerState {
    std::unique_ptr<LinearKernel> kernel;
  };

  Prepared prepare(Context& context, const Preparation& preparation) const override {
    DenseCase c;
    c.rows = preparation.bottoms[0][0];
    c.inputs = preparation.bottoms[0].count(1);
    c.outputs = rows();
    c.backward_data = preparation.bottom_needs_diff[0];
    c.dtype = preparation.dtype;
    c.precision = is_half(preparation.precision) ? Precision::tf32 : preparation.precision;
    Prepared prepared;
    State& state = prepared.make_state<State>();
    state.kernel = make_dense(context, c);
    prepared.workspace = state.kernel->workspace();
    return prepared;
  }

  void forward(Context& context, const Forward& pass) const override {
    state_of<State>(pass).kernel->forward(context, pass.bottom[0], pass.parameters[0], Tensor(),
                                          pass.top[0], pass.workspace);
    if (tops_ < 2) return;
    on(pass.bottom[1], [&]<typename T>() {
      parallel_for(context, pass.bottom[1].count(),
                   KnownLabel<T>{{pass.bottom[1].data<T>(), rows()}, pass.top[1].data<T>()});
    });
  }

  void backward(Context& context, const Backward& pass) const override {
    if (const Tensor& dx = pass.bottom_diff[0])
      state_of<State>(pass).kernel->backward_data(context, pass.top_diff[0], pass.parameters[0], dx,
                                                  pass.workspace);
    if (message().param_size() == 0 || message().param(0).lr_mult() != 0) remember(context, pass);
  }

  int64_t multiply_adds(const std::vector<Shape>& bottoms,
                        const std::vector<Shape>&) const override {
    return bottoms[0].count() * rows();
  }

  const int tops_;
};

class LabeledMatchingLayer final : public MatchingLayer {
 public:
  LabeledMatchingLayer() : MatchingLayer(2) {}

 private:
  const LabeledMatchingParameter& p() const { return params<LabeledMatchingParameter>(); }
  int64_t rows() const override {
    require(p().num_classes() > 0, "labeled_matching_param has num_classes: ", p().num_classes(),
            ": how many persons are there?");
    return p().num_classes();
  }

  void remember(Context& context, const Backward& pass) const override {
    const Tensor &x = pass.bottom[0], &w = pass.parameters[0];
    const int64_t batch = x.shape()[0], inputs = x.shape().count(1);
    on(x, [&]<typename T>() {
      const RowOfLabel<T> row_of{pass.bottom[1].data<T>(), rows()};
      parallel_rows(context, batch, inputs,
                    MoveRows<T>{row_of, x.data<T>(), batch, inputs, static_cast<T>(p().momentum()),
                                w.data<T>()});
      parallel_for(context, rows(), CountPasses<T>{row_of, batch, pass.parameters[1].data<T>()},
                   64);
    });
  }
};

class UnlabeledMatchingLayer final : public MatchingLayer {
 public:
  UnlabeledMatchingLayer() : MatchingLayer(1) {}

 private:
  int64_t rows() const override {
    const int64_t size = params<UnlabeledMatchingParameter>().queue_size();
    require(size > 0, "queue_size is ", size, ", but must be positive");
    return size;
  }

  void remember(Context& context, const Backward& pass) const override {
    const Tensor &x = pass.bottom[0], &w = pass.parameters[0], &next = pass.parameters[1];
    const int64_t batch = x.shape()[0], inputs = x.shape().count(1);
    on(x, [&]<typename T>() {
      const IsUnknown<T> unknown{pass.bottom[1].data<T>()};
      parallel_rows(
          context, batch, inputs,
          FillQueue<T>{unknown, x.data<T>(), next.data<T>(), batch, inputs, rows(), w.data<T>()});
      parallel_for(context, 1, MoveNext<T>{unknown, batch, rows(), next.data<T>()});
    });
  }
};

}  // namespace
REGISTER_LAYER(LabeledMatching, LabeledMatchingLayer);
REGISTER_LAYER(UnlabeledMatching, UnlabeledMatchingLayer);
}  // namespace crema
