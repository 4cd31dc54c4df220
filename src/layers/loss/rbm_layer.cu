// RBM: a restricted Boltzmann machine, the building block of deep belief networks; trained by
// contrastive divergence (Hinton, 2002; "A practical guide to training RBMs", 2010).
//   E(v, h) = -sum over j, i of h[j] w[j,i] v[i] - sum of b[j] h[j] - sum of a[i] v[i];
//   a GAUSSIAN unit x with bias c has (x - c)^2 / 2 instead of -c x
//   input of h[j]: b[j] + sum over i of w[j,i] v[i]; of v[i]: a[i] + sum over j of w[j,i] h[j]
//   mean: sigmoid(input) of BINARY units, input of GAUSSIAN ones, whose variance is 1
//   loss = 1 / N * sum of (x - r)^2, the reconstruction error: r is the mean of v given h, and h is
//   drawn given x, or, in testing and with sampling: NONE, its mean
// Shapes: x (N, V...), values from 0 to 1 if visible units are BINARY; the loss is a scalar, a
// second top has the means of h given x (N, num_output), the bottom of the next RBM.
// Parameters: w (num_output, V), b (num_output), which an InnerProduct of the same name loads; a
// (V); with persistent_chains the hidden units of the chains, which are measured, not learned.
// Gradient: the difference of the expectations of model and data, which is not the derivative of
// the loss, times the loss weight: dw[j,i] = <h[j] v[i]>model - <h[j] v[i]>data, db[j] =
// <h[j]>model - <h[j]>data, da likewise. Data: means over the batch, h its mean given x. Model: the
// same after cd_steps Gibbs steps from the data, or of the persistent chains, moved on by as many.
// None for x, and none from the second top.
#include <cmath>

#include "device/aligned.h"
#include "kernels/gemm/gemm.h"
#include "kernels/labels/labels.h"
#include "kernels/pointwise/bias.h"
#include "kernels/pointwise/pointwise_math.h"
#include "kernels/pointwise/random_values.h"
#include "kernels/reduce/reduce.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"
#include "tensor/part.h"

namespace crema {
namespace {

// Converts the products of weights and units to the means, in place.
template <typename T>
struct UnitMeans {
  const T* bias;
  bool binary;
  int64_t columns;
  T *x, *copy;  // copy: or null
  CREMA_HD void operator()(int64_t row, int64_t column) const {
    const int64_t i = row * columns + column;
    const T input = x[i] + bias[column];
    const T mean = binary ? sigmoid_of(input) : input;
    x[i] = mean;
    if (copy) copy[i] = mean;
  }
};

// Real: double for float64, where float's rounding would be visible.
template <typename Real>
struct DrawUnits {
  bool binary;
  uint64_t first;  // index of the first random words
  CREMA_HD FourNumbers<Real> draw(const PassRandom& random, int64_t index) const {
    const Random::Four words = random.get().four(first + static_cast<uint64_t>(index));
    return binary ? uniform_numbers<Real>(words) : normal_numbers<Real>(words);
  }
  template <typename T>
  CREMA_HD T operator()(Real number, T mean) const {
    return binary ? T(static_cast<T>(number) < mean) : mean + static_cast<T>(number);
  }
};

// A probability may be rounded to slightly more than 1.
template <typename T>
CREMA_HD bool is_probability(T x) {
  return x >= T(-1e-3) && x <= T(1.001);
}

// For parallel_sum(). Notes data that are no probabilities if `binary`.
template <typename Real>
struct ReconstructionError {
  const Real *x, *mean;
  bool binary;
  LabelNote note;
  template <typename T>
  CREMA_HD T operator()(int64_t, int64_t, int64_t i) const {
    if (binary && !is_probability(x[i])) note.write(i, x[i]);
    const T difference = x[i] - mean[i];
    return difference * difference;
  }
};

// Factor of the statistics: weight is on the device.
template <typename T>
struct StatisticsScale {
  const T* weight;
  T share;
  CREMA_HD T value() const { return *weight * share; }
};

template <typename T>
struct ScaleStatistics {
  StatisticsScale<T> scale;
  const T* x;
  T* y;
  CREMA_HD void operator()(int64_t i) const { y[i] = x[i] * scale.value(); }
};

// For parallel_sum(): sum k is of column k.
template <typename Real>
struct ScaledColumn {
  StatisticsScale<Real> scale;
  const Real* x;
  int64_t columns;
  template <typename T>
  CREMA_HD T operator()(int64_t k, int64_t row, int64_t) const {
    return x[row * columns + k] * scale.value();
  }
};

// Ranks that share the chains have a part each and zeros elsewhere, so the mean over the ranks,
// which snapshots store, is positive where a unit is on.
template <typename T>
struct ReadChains {
  const T* chains;
  T* h;
  CREMA_HD void operator()(int64_t i) const { h[i] = chains[i] > 0 ? T(1) : T(0); }
};
template <typename T>
struct WriteChains {
  const T* h;
  int64_t begin, end;
  T* chains;
  CREMA_HD void operator()(int64_t i) const {
    chains[i] = i >= begin && i < end ? h[i - begin] : T(0);
  }
};

// The statistics of some rows of visible and hidden units.
struct UnitRows {
  int64_t rows = 0;
  Tensor v, h;  // h: means
};

class RBMLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::loss, .learned = 3};

 private:
  const RBMParameter& p() const { return params<RBMParameter>(); }
  bool binary_visible() const { return p().visible() == RBMParameter::BINARY; }
  bool binary_hidden() const { return p().hidden() == RBMParameter::BINARY; }
  bool draws_hidden() const { return training() && p().sampling() != RBMParameter::NONE; }
  bool draws_visible() const { return training() && p().sampling() == RBMParameter::ALL; }
  Arity tops() const override { return {1, 2}; }
  bool is_loss() const override { return true; }
  LayerTraits traits() const override { return {.reads = {true, false}}; }
  bool differentiable(int) const override { return false; }

  void setup(Context&, const std::vector<Shape>& bottoms) override {
    hidden_ = p().num_output();
    chains_ = p().persistent_chains();
    require(hidden_ > 0, "rbm_param has no num_output (or 0): how many hidden units are there?");
    require(p().cd_steps() > 0, "cd_steps is 0, but there must be at least one Gibbs step");
    require(chains_ == 0 || (binary_hidden() && p().sampling() != RBMParameter::NONE),
            "persistent_chains is ", chains_,
            ", but chains store hidden units that are 0 or 1: they need hidden: BINARY and "
            "sampling: HIDDEN or ALL");
    require(bottoms[0].axes() > 0, "the bottom must be samples (N, V...), but it is a scalar");
    visible_ = bottoms[0].count(1);
    small_weights_.set_type("gaussian");
    small_weights_.set_std(0.01f);
    add_parameter({hidden_, visible_},
                  p().has_weight_filler() ? p().weight_filler() : small_weights_);
    add_parameter({hidden_}, p().bias_filler());
    add_parameter({visible_}, p().visible_bias_filler());
    if (chains_ > 0) add_parameter({chains_, hidden_}, FillerParameter::default_instance(), false);
  }

  LossParts loss_parts(const std::vector<Shape>&) const override {
    return LossParts::all(PartsRule::mean);
  }

  // Saved: the means of h given x, the reconstruction, the note of bad data.
  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape& x = bottoms[0];
    require(x.axes() > 0 && x.count(1) == visible_, "the bottom has shape ", x.brief(),
            ", that is ", x.count(1), " values a sample, but the weights were made for ", visible_);
    std::vector<Shape> tops = {Shape()};
    if (message().top_size() > 1) tops.push_back({x[0], hidden_});
    return {
        tops,
        {{{x[0], hidden_}, {}}, {{x[0], visible_}, {}}, {{LabelNote::kCount}, DType::i32, true}}};
  }

  struct State : LayerState {
    int64_t rows = 0;  // of the workspace's parts
    Precision precision = Precision::fp32;
    size_t bytes_of(int64_t columns, DType dtype) const {
      return aligned(static_cast<size_t>(rows * columns) * size_of(dtype));
    }
  };

  // Workspace: hidden units drawn, in backward also visible and hidden units of a Gibbs chain.
  Prepared prepare(Context&, const Preparation& preparation) const override {
    Prepared prepared;
    State& state = prepared.make_state<State>();
    state.precision = is_half(preparation.precision) ? Precision::tf32 : preparation.precision;
    state.rows = std::max(preparation.bottoms[0][0], chains_);
    const size_t hidden = state.bytes_of(hidden_, preparation.dtype);
    prepared.workspace =
        preparation.backward ? 2 * hidden + state.bytes_of(visible_, preparation.dtype) : hidden;
    return prepared;
  }
  enum Part { kDrawn, kMeans, kVisible };
  template <typename Pass>
  Tensor part_at(const Pass& pass, Part part, int64_t rows, DType dtype) const {
    return part_of(pass.workspace, part * state_of<State>(pass).bytes_of(hidden_, dtype),
                   {rows, part == kVisible ? visible_ : hidden_}, dtype);
  }

  // Means of the hidden units given v, and of the visible ones given h.
  template <typename Pass>
  void hidden_means(Context& context, const Pass& pass, const Tensor& v, const Tensor& h,
                    const Tensor& copy = {}) const {
    Gemm g{.transpose_b = true, .m = h.shape()[0], .n = hidden_, .k = visible_};
    g.precision = state_of<State>(pass).precision;
    on(h, [&]<typename T>() {
      const T *w = pass.parameters[0].template data<T>(),
              *b = pass.parameters[1].template data<T>();
      gemm(context, g, v.data<T>(), w, h.data<T>());
      parallel_rows(context, g.m, hidden_,
                    UnitMeans<T>{b, binary_hidden(), hidden_, h.data<T>(), copy.data<T>()});
    });
  }
  template <typename Pass>
  void visible_means(Context& context, const Pass& pass, const Tensor& h, const Tensor& v) const {
    Gemm g{.m = v.shape()[0], .n = visible_, .k = hidden_};
    g.precision = state_of<State>(pass).precision;
    on(v, [&]<typename T>() {
      const T *w = pass.parameters[0].template data<T>(),
              *a = pass.parameters[2].template data<T>();
      gemm(context, g, h.data<T>(), w, v.data<T>());
      parallel_rows(context, g.m, visible_,
                    UnitMeans<T>{a, binary_visible(), visible_, v.data<T>(), nullptr});
    });
  }

  // Draws units with these means. number: the index of the draw in this pass; even for the hidden
  // units. samples: the samples of these units.
  template <typename Pass>
  void draw(Context& context, const Pass& pass, const BatchShare& samples, int number,
            const Tensor& means, const Tensor& units) const {
    const bool binary = number % 2 == 0 ? binary_hidden() : binary_visible();
    const PassRandom random = context.random(id(), pass.pass, pass.live_pass);
    const uint64_t first = static_cast<uint64_t>(number) << 40;
    on(means, [&]<typename T>() {
      change_randomly(context, random, samples, DrawUnits<T>{binary, first}, means, units);
    });
  }

  void forward(Context& context, const Forward& pass) const override {
    const Tensor &x = pass.bottom[0], &means = pass.saved[0], &r = pass.saved[1];
    const int64_t batch = x.shape()[0];
    check_data(x);
    hidden_means(context, pass, x, means, pass.top.size() > 1 ? pass.top[1] : Tensor());
    Tensor h = means;
    if (draws_hidden()) {
      h = part_at(pass, kDrawn, batch, x.dtype());
      draw(context, pass, pass.share, 0, means, h);
    }
    visible_means(context, pass, h, r);
    on(x, [&]<typename T>() {
      const LabelNote note{pass.saved[2].data<int32_t>(), 0, visible_, pass.pass, pass.live_pass};
      parallel_sum<T>(context, {1, 1, x.count()},
                      ReconstructionError<T>{x.data<T>(), r.data<T>(), binary_visible(), note},
                      {pass.top[0].data<T>(), T(1) / static_cast<T>(batch)});
    });
  }

  void backward(Context& context, const Backward& pass) const override {
    if (!pass.top_diff[0]) return clear_gradients(context, pass);  // loss_weight: 0
    const int64_t batch = pass.bottom[0].shape()[0];
    const UnitRows model = chains_ > 0 ? run_chains(context, pass) : reconstruct(context, pass);
    // Each rank's gradients are weighted with its share of the samples, not of the chains.
    const double ranks = pass.share.all > 0 ? static_cast<double>(pass.share.all) /
                                                  static_cast<double>(pass.share.count)
                                            : 1;
    const double data_share = 1 / static_cast<double>(batch),
                 model_share = chains_ > 0 ? ranks / static_cast<double>(chains_) : data_share;
    add_statistics(context, pass, {batch, pass.bottom[0], pass.saved[0]}, -data_share, true);
    if (model.rows > 0) add_statistics(context, pass, model, model_share, false);
  }

  static void clear_gradients(Context& context, const Backward& pass) {
    for (size_t k = 0; k < 3; ++k)
      if (pass.parameter_diff[k] && !pass.accumulate[k]) zero(context, pass.parameter_diff[k]);
  }

  // Gibbs steps from the data, the first of which forward made.
  UnitRows reconstruct(Context& context, const Backward& pass) const {
    const Tensor& r = pass.saved[1];
    const int64_t batch = r.shape()[0];
    const Tensor v = part_at(pass, kVisible, batch, r.dtype()),
                 h = part_at(pass, kMeans, batch, r.dtype()),
                 drawn = part_at(pass, kDrawn, batch, r.dtype());
    UnitRows model{batch, draws_visible() ? v : r, h};
    if (draws_visible()) draw(context, pass, pass.share, 1, r, v);
    for (int step = 1;; ++step) {
      hidden_means(context, pass, model.v, h);
      if (step == static_cast<int>(p().cd_steps())) return model;
      if (draws_hidden()) draw(context, pass, pass.share, 2 * step, h, drawn);
      visible_means(context, pass, draws_hidden() ? drawn : h, v);
      if (draws_visible()) draw(context, pass, pass.share, 2 * step + 1, v, v);
      model.v = v;
    }
  }

  // Moves this rank's part of the chains on.
  UnitRows run_chains(Context& context, const Backward& pass) const {
    const Tensor& chains = pass.parameters[3];
    const DType dtype = chains.dtype();
    const BatchShare& samples = pass.share;
    const bool shared = samples.all > 0;
    const int64_t begin = shared ? chains_ * samples.first / samples.all : 0,
                  end = shared ? chains_ * (samples.first + samples.count) / samples.all : chains_,
                  rows = end - begin;
    const BatchShare part{begin, rows, chains_};
    const Tensor v = part_at(pass, kVisible, rows, dtype), h = part_at(pass, kMeans, rows, dtype),
                 drawn = part_at(pass, kDrawn, rows, dtype);
    on(chains, [&]<typename T>() {
      T* const of_all = chains.data<T>();
      parallel_for(context, rows * hidden_,
                   ReadChains<T>{of_all + begin * hidden_, drawn.data<T>()});
      for (int step = 0; rows > 0 && step < static_cast<int>(p().cd_steps()); ++step) {
        visible_means(context, pass, drawn, v);
        if (draws_visible()) draw(context, pass, part, 2 * step + 1, v, v);
        hidden_means(context, pass, v, h);
        draw(context, pass, part, 2 * step + 2, h, drawn);
      }
      parallel_for(context, chains.count(),
                   WriteChains<T>{drawn.data<T>(), begin * hidden_, end * hidden_, of_all});
    });
    return {rows, v, h};
  }

  // Adds what these rows expect, times share and loss weight, to the gradients; `first` sets them.
  void add_statistics(Context& context, const Backward& pass, const UnitRows& units, double share,
                      bool first) const {
    const auto adds = [&](size_t k) { return !first || pass.accumulate[k]; };
    const Tensor &dw = pass.parameter_diff[0], &db = pass.parameter_diff[1],
                 &da = pass.parameter_diff[2];
    on(units.v, [&]<typename T>() {
      const StatisticsScale<T> scale{pass.top_diff[0].data<T>(), static_cast<T>(share)};
      T* const scaled = part_at(pass, kDrawn, units.rows, units.v.dtype()).template data<T>();
      parallel_for(context, units.rows * hidden_,
                   ScaleStatistics<T>{scale, units.h.data<T>(), scaled});
      if (dw)
        gemm(context,
             {.transpose_a = true,
              .m = hidden_,
              .n = visible_,
              .k = units.rows,
              .beta = adds(0) ? 1.f : 0.f,
              .precision = state_of<State>(pass).precision},
             scaled, units.v.data<T>(), dw.data<T>());
      if (db) bias_gradient(context, units.rows, hidden_, 1, scaled, db.data<T>(), adds(1));
      if (da)
        parallel_sum<T>(context, {visible_, units.rows, 1},
                        ScaledColumn<T>{scale, units.v.data<T>(), visible_},
                        {da.data<T>(), T(1), adds(2)});
    });
  }

  [[noreturn]] void fail_for_value(int64_t position, double value, const std::string& when) const {
    fail(
        "value ", value, " of sample ", position / visible_, " of the batch", when, ", position ",
        position % visible_,
        ", is no probability, but binary visible units need values from 0 to 1: scale the data "
        "(transform_param { scale: 0.00392156862745098 } for bytes), or standardize them and write "
        "visible: GAUSSIAN");
  }
  // On a GPU check() does it.
  void check_data(const Tensor& x) const {
    if (x.device() != Device::cpu || !binary_visible()) return;
    on(x, [&]<typename T>() {
      const T* const values = x.data<T>();
      for (int64_t i = 0; i < x.count(); ++i)
        if (!is_probability(values[i])) fail_for_value(i, static_cast<double>(values[i]), "");
    });
  }
  void check(Context& context, const Forward& pass) const override {
    if (const std::optional<NotedLabel> bad = take_label_note(context, pass.saved[2]))
      fail_for_value(bad->position, bad->label, when_noted(*bad));
  }

  int64_t multiply_adds(const std::vector<Shape>& bottoms,
                        const std::vector<Shape>&) const override {
    return 2 * bottoms[0].count() * hidden_;
  }

  FillerParameter small_weights_;  // weights without a filler
  int64_t hidden_ = 0, visible_ = 0, chains_ = 0;
};

}  // namespace
REGISTER_LAYER(RBM, RBMLayer);
}  // namespace crema
