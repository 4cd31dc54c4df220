// DenseBlock: a block of DenseNet in one layer, as in one fork.
//   x_0 = the bottom, x_(t+1) = [x_t, d(conv3x3(relu(norm(x_t))))] along the channels; y is the
//   last. With use_BC conv3x3(relu(norm(conv1x1(relu(norm(x_t)))))), with 4 * growthRate channels
//   in between. norm: batch normalization with a scale and bias per channel, as BatchNorm and
//   Scale; d: Dropout by dropout_amount if use_dropout is set, in training.
// Shapes: x (N, C, H, W), y (N, C + numTransition * growthRate, H, W).
// Parameters, in groups of one for each of the T = numTransition steps: filters (growthRate,
// channels, 3, 3) of Filter_Filler; scales and biases of BN_Scaler_Filler (default 1) and
// BN_Bias_Filler, sums of means and of variances, (1, channels, 1, 1) each; with use_BC the same
// five of the 1 x 1 convolutions; the number by which the sums are divided. The sums and what
// follows are measured, not learned.
// Gradient: through all steps. Each reads its x_t from y, and recomputes its normalization.
#include "kernels/conv/conv.h"
#include "kernels/move/concat.h"
#include "kernels/norm/batch_norm.h"
#include "kernels/pointwise/add.h"
#include "kernels/pointwise/batch_values.h"
#include "kernels/pointwise/pointwise.h"
#include "layers/layer.h"
#include "proto/filler.pb.h"
#include "proto/params/forks_segmentation.pb.h"
#include "tensor/part.h"

namespace crema {
namespace {

template <typename T>
struct DropBody {
  PassRandom random;
  int64_t first;       // values of the batch before these
  uint32_t threshold;  // random words below it drop
  T factor;
  T* x;
  CREMA_HD void operator()(int64_t i) const {
    x[i] = random.get().word(static_cast<uint64_t>(first + i)) < threshold ? T(0) : x[i] * factor;
  }
};

// A normalization with a ReLU, followed by a convolution.
struct DenseStep {
  BatchNormCase norm;
  std::unique_ptr<LinearKernel> conv;
  Shape x, y;  // in the whole step
  // Parameter indices.
  int filter = 0, scale = 0, shift = 0, mean = 0, variance = 0;
  size_t saved = 0;  // index of mean and inverse among the saved tensors
};

constexpr int kMaxSteps = 1000;  // five or ten parameters each

class DenseBlockLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::convolution, .learned = 3};

 private:
  const DenseBlockParameter& p() const { return params<DenseBlockParameter>(); }
  int steps() const { return p().numtransition(); }
  int factor() const { return (p().use_bc() ? 10 : 5) * steps(); }
  int64_t grown(int step) const { return channels_ + int64_t{step} * p().growthrate(); }
  int64_t narrow() const { return 4 * int64_t{p().growthrate()}; }
  bool drops() const { return p().use_dropout() && training() && p().dropout_amount() > 0; }

  void setup(Context&, const std::vector<Shape>& bottoms) override {
    require(bottoms[0].axes() == 4, "DenseBlock takes images (N, C, H, W), but the bottom is ",
            bottoms[0].brief());
    require(steps() > 0 && steps() <= kMaxSteps && p().growthrate() > 0,
            "numTransition must be from 1 to ", kMaxSteps,
            " and growthRate at least 1, but they are ", steps(), " and ", p().growthrate());
    require(p().filter_h() == 3 && p().filter_w() == 3 && p().pad_h() == 1 && p().pad_w() == 1 &&
                p().conv_verticalstride() == 1 && p().conv_horizentalstride() == 1,
            "DenseBlock has filters of 3 x 3 with padding 1 and step 1 only: its channels are put "
            "together");
    require(!p().use_dropout() || (p().dropout_amount() >= 0 && p().dropout_amount() < 1),
            "dropout_amount is ", p().dropout_amount(), ", but must be from 0 to below 1");
    channels_ = bottoms[0][1];
    ones_.set_value(1);
    const FillerParameter& scale = p().has_bn_scaler_filler() ? p().bn_scaler_filler() : ones_;
    const int64_t inner = p().use_bc() ? narrow() : 0;
    for (const bool bottleneck : {false, true}) {
      if (bottleneck && !p().use_bc()) break;
      const auto group = [&](const FillerParameter& filler, bool learned) {
        for (int t = 0; t < steps(); ++t)
          add_parameter({1, bottleneck ? inner : grown(t), 1, 1}, filler, learned);
      };
      for (int t = 0; t < steps(); ++t) {
        add_parameter(bottleneck ? Shape{inner, grown(t), 1, 1}
                                 : Shape{p().growthrate(), inner > 0 ? inner : grown(t), 3, 3},
                      p().filter_filler());
      }
      group(scale, true);
      group(p().bn_bias_filler(), true);
      group(FillerParameter::default_instance(), false);
      group(FillerParameter::default_instance(), false);
    }
    add_parameter({1}, FillerParameter::default_instance(), false);
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape& x = bottoms[0];
    require(x.axes() == 4 && x[1] == channels_, "the bottom is ", x.brief(),
            ", but the filters were made for ", channels_, " channels");
    Inference inference{{{x[0], grown(steps()), x[2], x[3]}}, {}};
    for (int t = 0; t < steps(); ++t) {
      // Mean and inverse of each normalization; with use_BC the tensor between the convolutions.
      inference.saved.push_back({{grown(t)}, {}});
      inference.saved.push_back({{grown(t)}, {}});
      if (!p().use_bc()) continue;
      inference.saved.push_back({{narrow()}, {}});
      inference.saved.push_back({{narrow()}, {}});
      inference.saved.push_back({{x[0], narrow(), x[2], x[3]}, {}});
    }
    return inference;
  }

  // Steps per t: one, or two with use_BC.
  int each() const { return p().use_bc() ? 2 : 1; }

  struct State : LayerState {
    std::vector<DenseStep> steps;
    size_t whole = 0;  // bytes of a tensor in the workspace
  };

  Prepared prepare(Context& context, const Preparation& preparation) const override {
    const Shape& x = preparation.bottoms[0];
    Prepared prepared;
    State& state = prepared.make_state<State>();
    size_t& whole = state.whole;
    prepared.parameter_formats.resize(parameters().size());
    whole = static_cast<size_t>(x[0] * grown(steps()) * x.count(2)) * size_of(preparation.dtype);
    if (p().use_bc())
      whole = std::max(
          whole, static_cast<size_t>(x[0] * narrow() * x.count(2)) * size_of(preparation.dtype));
    size_t inside = 0;
    for (int t = 0; t < steps(); ++t) {
      for (int k = 0; k < each(); ++k) {
        const bool first = k == 0, last = k + 1 == each();
        DenseStep step;
        step.x = {x[0], first ? grown(t) : narrow(), x[2], x[3]};
        step.y = {x[0], last ? int64_t{p().growthrate()} : narrow(), x[2], x[3]};
        // With use_BC the 1 x 1 convolution comes first; its normalization is the block's.
        step.filter = last ? t : 5 * steps() + t;
        const int norm = first ? 0 : 5 * steps();
        step.scale = norm + steps() + t;
        step.shift = norm + 2 * steps() + t;
        step.mean = norm + 3 * steps() + t;
        step.variance = norm + 4 * steps() + t;
        step.saved = static_cast<size_t>(t) * (each() == 2 ? 5 : 2) + 2 * static_cast<size_t>(k);
        step.norm.view = ChannelView::of(step.x, {});
        step.norm.batch_statistics = training();
        step.norm.fraction = p().moving_average_fraction();
        step.norm.relu = true;
        ConvCase c;
        c.x = step.x;
        c.y = step.y;
        c.w = parameters()[step.filter].shape;
        c.stride = c.dilation = {1, 1};
        c.pad = last ? std::vector<int64_t>{1, 1} : std::vector<int64_t>{0, 0};
        c.weights_format = preparation.parameter_formats[step.filter];
        c.backward_data = preparation.backward;
        c.backward_weights = preparation.backward;
        c.dtype = preparation.storage;
        c.precision = preparation.precision;
        step.conv = make_conv(context, c);
        prepared.parameter_formats[step.filter] = step.conv->weights_format();
        inside = std::max(
            {inside, step.conv->workspace(), batch_norm_workspace(context, step.norm.view)});
        state.steps.push_back(std::move(step));
      }
    }
    whole = aligned(whole);
    prepared.workspace = 5 * whole + aligned(sizeof(double)) + inside;
    return prepared;
  }

  // The workspace has five tensors of at most the top's size, a scalar, and the kernels' workspace.
  template <typename Pass>
  static Tensor space(const Pass& pass, int index, const Shape& shape, DType dtype) {
    return part_of(pass.workspace, index * state_of<State>(pass).whole, shape, dtype);
  }
  template <typename Pass>
  static Tensor inside(const Pass& pass) {
    const size_t at = 5 * state_of<State>(pass).whole + aligned(sizeof(double));
    return part_of(pass.workspace, at, {static_cast<int64_t>(pass.workspace.bytes() - at)},
                   DType::u8);
  }

  // All normalizations share one divisor, which is updated once per pass: by the last of them.
  template <typename Pass>
  BatchNormParameters norm_parameters(Context& context, const DenseStep& step,
                                      const Pass& pass) const {
    const std::vector<Tensor>& parameters = pass.parameters;
    const State& state = state_of<State>(pass);
    Tensor divisor = parameters[factor()];
    if (training() && &step != &state.steps.back()) {
      const Tensor own = part_of(pass.workspace, 5 * state.whole, {1}, divisor.dtype());
      copy(context, divisor, own);
      divisor = own;
    }
    const auto channels = [&](int position) {
      return parameters[position].reshaped({parameters[position].count()});
    };
    return {channels(step.mean), channels(step.variance), divisor, channels(step.scale),
            channels(step.shift)};
  }

  static BatchNormSaved statistics(const DenseStep& step, const std::vector<Tensor>& saved) {
    return {saved[step.saved], saved[step.saved + 1], Tensor()};
  }

  template <typename Pass>
  void drop(Context& context, const Pass& pass, int t, const Tensor& x) const {
    if (!drops()) return;
    const float amount = p().dropout_amount();
    on(x, [&]<typename T>() {
      parallel_for(
          context, x.count(),
          DropBody<T>{
              context.random(mix(id(), static_cast<uint64_t>(t)), pass.pass, pass.live_pass),
              values_before(pass.share, x.count()), static_cast<uint32_t>(amount * 4294967296.0),
              1 / (1 - T(amount)), x.data<T>()});
    });
  }

  void forward(Context& context, const Forward& pass) const override {
    const std::vector<DenseStep>& all = state_of<State>(pass).steps;
    const DType dtype = pass.top[0].dtype();
    Tensor x = pass.bottom[0];
    for (int t = 0; t < steps(); ++t) {
      Tensor from = x;
      for (int k = 0; k < each(); ++k) {
        const DenseStep& step = all[t * each() + k];
        const Tensor normal = space(pass, 2, step.x, dtype);
        batch_norm_forward(context, step.norm, norm_parameters(context, step, pass), from, Tensor(),
                           Tensor(), normal, statistics(step, pass.saved), inside(pass));
        from = k + 1 < each() ? pass.saved[step.saved + 4] : space(pass, 3, step.y, dtype);
        step.conv->forward(context, normal, pass.parameters[step.filter], Tensor(), from,
                           inside(pass));
      }
      drop(context, pass, t, from);
      const Tensor next =
          t + 1 < steps() ? space(pass, t % 2, all[(t + 1) * each()].x, dtype) : pass.top[0];
      concat_pieces(context, 1, {grown(t), int64_t{p().growthrate()}}, {x, from}, next);
      x = next;
    }
  }

  void backward(Context& context, const Backward& pass) const override {
    const std::vector<DenseStep>& all = state_of<State>(pass).steps;
    const DType dtype = pass.top_diff[0].dtype();
    const Tensor& y = pass.top[0];
    const int64_t growth = p().growthrate();
    Tensor dx = pass.top_diff[0];  // of x_(t+1)
    for (int t = steps() - 1; t >= 0; --t) {
      const DenseStep& first = all[t * each()];
      Tensor dy = space(pass, 2, all[(t + 1) * each() - 1].y, dtype);
      const Tensor below =
          t == 0 && pass.bottom_diff[0] ? pass.bottom_diff[0] : space(pass, t % 2, first.x, dtype);
      split_pieces(context, 1, {grown(t), growth}, {dx}, {below, dy});
      drop(context, pass, t, dy);
      for (int k = each() - 1; k >= 0; --k) {
        const DenseStep& step = all[t * each() + k];
        // x_t is a part of y; both normalizations are recomputed.
        Tensor x = space(pass, 3, step.x, dtype);
        if (k == 0) {
          split_pieces(context, 1, {grown(t), grown(steps()) - grown(t)}, {y}, {x, Tensor()});
        } else {
          x = pass.saved[step.saved + 2];
        }
        const Tensor normal = space(pass, 4, step.x, dtype);
        const BatchNormParameters parameters = norm_parameters(context, step, pass);
        const BatchNormSaved saved = statistics(step, pass.saved);
        batch_norm_recompute(context, step.norm, parameters, x, Tensor(), normal, saved,
                             inside(pass));
        if (const Tensor& dw = pass.parameter_diff[step.filter]) {
          step.conv->backward_weights(context, normal, dy, dw, Tensor(),
                                      pass.accumulate[step.filter], false, inside(pass));
        }
        // In the memory of the normalization's output, which is no longer needed.
        step.conv->backward_data(context, dy, pass.parameters[step.filter], normal, inside(pass));
        BatchNormGradients gradients;
        gradients.dx = normal;
        gradients.d_scale = of_channels(pass.parameter_diff[step.scale]);
        gradients.d_shift = of_channels(pass.parameter_diff[step.shift]);
        gradients.accumulate_scale = pass.accumulate[step.scale];
        gradients.accumulate_shift = pass.accumulate[step.shift];
        batch_norm_backward(context, step.norm, parameters, x, Tensor(), normal, Tensor(), saved,
                            gradients, inside(pass));
        if (k > 0) {
          dy = space(pass, 2, step.x, dtype);
          copy(context, normal, dy);
        } else {
          add_to(context, normal, below);
        }
      }
      dx = below;
    }
  }

  static Tensor of_channels(const Tensor& tensor) {
    return tensor ? tensor.reshaped({tensor.count()}) : tensor;
  }

  LayerTraits traits() const override { return {.reads = {false, true}}; }

  int64_t channels_ = 0;
  FillerParameter ones_;
};

}  // namespace
REGISTER_LAYER(DenseBlock, DenseBlockLayer);
}  // namespace crema
