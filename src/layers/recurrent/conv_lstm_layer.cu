// ConvLSTM (a fork): an LSTM along sequences of images, with convolutions (*) instead of matrix
// products.
//   i, f, o = sigmoid, g = tanh of the gates' pre-activations
//     w_x * x[t] + w_s * x_static + w_h * (cont[t] h[t-1]) + b + w_c c[t-1]
//   c[t] = cont[t] f c[t-1] + i g;  h[t] = o tanh(c[t])
// w_c (unless disable_hadamard) has one weight per position, shared by all channels, and none for
// g; it also reads c[t-1] where a sequence begins.
// Shapes: x (T, N, C, spatial...), cont (T, N), 0 where a sequence begins, else 1, and x_static (N,
// C, spatial...) if given; y = h (T, N, num_output, spatial...). With expose_hidden: h and c before
// the first step are two more bottoms and those after the last two more tops, (1, N, num_output,
// spatial...); otherwise they are kept from one forward pass to the next, initially zero. With
// ignore_x only the shape of x matters.
// Parameters, for i, f, o and g in that order: w_x (num_output, C/group, kernel...); w_s likewise;
// then w_h and b of each; then w_c of i, f and o (the state's axes from axis_hadamard on),
// initially 1. lstm_conv_param describes both kinds of convolutions, or there is one with type
// "input" and one with type "hidden".
// Gradient: back along the steps of this batch; none for cont and the states.
#include <algorithm>

#include "kernels/pointwise/bias.h"
#include "kernels/reduce/reduce.h"
#include "layers/recurrent/gate_convolution.h"
#include "layers/recurrent/lstm_layer.h"
#include "layers/recurrent/peepholes.h"
#include "proto/filler.pb.h"
#include "proto/layer.pb.h"
#include "tensor/part.h"

namespace crema {
namespace {
constexpr int kGates = GateConvolution::kGates;

class ConvLstmLayer final : public LstmLayer {
  const LSTMDebugParameter& p() const { return params<LSTMDebugParameter>(); }

  // The convolutions of one kind.
  struct Kind {
    GateConvolution conv;
    GateIndices weights;
  };

  // The convolution_param whose type is not `other`.
  const ConvolutionParameter& params_except(const char* other) const {
    const auto& all = message().lstm_conv_param();
    if (all[0].type() != other) return all[0];
    require(all.size() > 1, "the only lstm_conv_param has type: \"", other,
            "\": describe the other convolutions too, or all of them with type: \"all\"");
    return all[1];
  }

  // image: (channels, spatial...).
  Kind make_kind(const ConvolutionParameter& c, const Shape& image, bool bias) {
    Kind kind{GateConvolution(c, image), {static_cast<int>(parameters().size()), bias ? 2 : 1}};
    for (int gate = 0; gate < kGates; ++gate) {
      add_parameter(kind.conv.gate_weights(), c.weight_filler());
      if (bias) add_parameter({outputs_}, c.bias_filler());
    }
    return kind;
  }

  void check_descriptions() const {
    check_gate_convolutions(message());
    require(p().expose_size() == 0, "expose names \"", p().expose_size() > 0 ? p().expose(0) : "",
            "\", but the steps have no blobs: the first top has h of all steps, and expose_hidden "
            "gives h and c of the last");
  }

  void setup(Context&, const std::vector<Shape>& bottoms) override {
    check_descriptions();
    const Shape& x = bottoms[0];
    require(x.axes() >= 4,
            "the first bottom must have the axes steps, sequences, channels and at "
            "least one spatial, but its shape is ",
            x.brief());
    outputs_ = message().lstm_conv_param(0).num_output();
    spatial_axes_ = x.axes() - 3;
    if (!p().ignore_x()) input_ = make_kind(params_except("hidden"), behind(x, 2), false);
    if (static_cast<int>(bottoms.size()) > 2 + exposed()) {
      require(!p().ignore_x(),
              "with ignore_x there is no third bottom: an input that stays the "
              "same is none to ignore");
      require(bottoms[2].axes() == x.axes() - 1,
              "the third bottom is the input that stays the same "
              "at all steps and must have the first one's axes without steps, but its shape is ",
              bottoms[2].brief());
      fixed_ = make_kind(params_except("hidden"), behind(bottoms[2], 1), false);
      fixed_weights_ = fixed_.weights.first;
    }
    const ConvolutionParameter& hidden = params_except("input");
    hidden_kind_ = make_kind(hidden, unit_shape(x), hidden.bias_term());
    if (hidden.bias_term()) biases_ = {hidden_kind_.weights.first + 1, 2};
    if (p().disable_hadamard()) return;
    ones_.set_value(1);
    peephole_ = static_cast<int>(parameters().size());
    for (int gate = 0; gate < kPeepholes; ++gate) add_parameter(peephole_shape(x), ones_);
  }

  static Shape behind(const Shape& shape, int axis) {
    return Shape(std::vector<int64_t>(shape.dims().begin() + axis, shape.dims().end()));
  }
  Shape unit_shape(const Shape& x) const override {
    Shape unit = behind(x, 2);
    unit[0] = outputs_;
    return unit;
  }
  Shape peephole_shape(const Shape& x) const {
    std::vector<int64_t> state = unit_shape(x).dims();
    state.insert(state.begin(), {1, x[1]});
    const size_t first = p().axis_hadamard(), end = first + p().num_axes_hadamard();
    require(end <= state.size(), "axis_hadamard ", first, " and num_axes_hadamard ",
            p().num_axes_hadamard(), " go beyond the axes of the state, ", Shape(state).brief());
    return Shape(std::vector<int64_t>(state.begin() + first, state.begin() + end));
  }

  void check_inputs(const std::vector<Shape>& bottoms) const override {
    const Shape& x = bottoms[0];
    const bool channels = p().ignore_x() || x[2] == input_.conv.channels;
    require(x.axes() == 3 + spatial_axes_ && channels, "the bottom has shape ", x.brief(),
            ", but the weights were made for ", input_.conv.channels, " channels and ",
            spatial_axes_, " spatial axes");
    if (has_fixed()) {
      Shape wanted = behind(x, 1);
      wanted[1] = fixed_.conv.channels;
      require(bottoms[2] == wanted,
              "the third bottom is the input that stays the same at all "
              "steps, so its shape must be ",
              wanted.brief(), ", but it is ", bottoms[2].brief());
    }
    if (peephole_ < 0) return;
    const Shape &made = parameters()[peephole_].shape, now = peephole_shape(x);
    require(made == now, "the factors of the cell were made for ", made.brief(), ", but a bottom ",
            x.brief(), " needs ", now.brief());
  }

  // Parts of the workspace after that of the convolutions, each present in both passes.
  enum Own { kInputW, kFixedW, kHiddenW, kBiases, kOfHidden, kWeightsDiff, kOwnEnd };

  struct ConvState : State {
    Shape unit;
    PeepholeIndices positions;
    // Of all gates at once. hidden_gradient: of the weights, from all steps at once.
    std::unique_ptr<LinearKernel> input, fixed, hidden_step, hidden_gradient;
    size_t starts[kOwnEnd] = {};

    // Shape of x or of the pre-activations as images.
    Shape images(int64_t count, int64_t channels) const {
      std::vector<int64_t> dims = unit.dims();
      dims[0] = channels;
      dims.insert(dims.begin(), count);
      return Shape(dims);
    }
    int64_t all_steps() const { return x.steps * x.sequences; }
    Tensor step_of(const Tensor& all, int64_t t, int64_t channels) const {
      const Shape shape = images(x.sequences, channels);
      return crema::part(all, shape, t * shape.count());
    }
    Tensor own(const Tensor& workspace, Own piece, const Shape& shape) const {
      return part_of(workspace, starts[piece], shape, dtype);
    }
    Tensor weights_in(const Tensor& workspace, Own piece, const Kind& kind) const {
      return own(workspace, piece, kind.conv.weights());
    }
  };

  Prepared prepare(Context& context, const Preparation& preparation) const override {
    auto state = std::make_unique<ConvState>();
    ConvState& s = *state;
    s.unit = unit_shape(preparation.bottoms[0]);
    s.x = extents(preparation.bottoms[0]);
    const auto bytes_of = [&](const Shape& shape) {
      return aligned(static_cast<size_t>(shape.count()) * size_of(preparation.dtype));
    };
    size_t workspace = 0;
    const auto make = [&](ConvCase c, bool forward, bool data, bool weights) {
      c.forward = forward;
      c.backward_data = data;
      c.backward_weights = weights;
      c.dtype = preparation.dtype;
      c.precision = product_precision(preparation);
      std::unique_ptr<LinearKernel> conv = make_conv(context, c);
      workspace = std::max(workspace, conv->workspace());
      return conv;
    };
    const auto learns = [&](const GateIndices& positions) {
      bool any = false;
      for (int gate = 0; gate < kGates; ++gate)
        any = any || preparation.parameter_needs_diff[positions.of(gate)];
      return any;
    };
    size_t maximum = 0;
    const auto images_of = [&](const Kind& kind, int64_t count) {
      maximum = std::max(maximum, bytes_of(kind.conv.weights()));
      return kind.conv.conv_case(s.images(count, kind.conv.channels));
    };
    if (input_.weights.there())
      s.input = make(images_of(input_, s.all_steps()), true, preparation.bottom_needs_diff[0],
                     learns(input_.weights));
    if (fixed_.weights.there())
      s.fixed = make(images_of(fixed_, s.x.sequences), true, preparation.bottom_needs_diff[2],
                     learns(fixed_.weights));
    ConvCase step = images_of(hidden_kind_, s.x.sequences);
    step.bias = biases_.there();
    // cuDNN requires each step's images to be aligned to 16 bytes.
    const int64_t each = s.images(s.x.sequences, outputs_).count();
    const bool even = each * static_cast<int64_t>(size_of(preparation.dtype)) % 16 == 0;
    const std::string wanted = context.implementation;
    if (!even && context.device() == Device::gpu && wanted != "plain")
      context.implementation = "im2col";
    s.hidden_step = make(step, true, preparation.backward, false);
    context.implementation = wanted;
    if (learns(hidden_kind_.weights))
      s.hidden_gradient = make(images_of(hidden_kind_, s.all_steps()), false, false, true);
    if (peephole_ >= 0) {
      s.positions.count = parameters()[peephole_].shape.count();
      const int axes = static_cast<int>(p().axis_hadamard() + p().num_axes_hadamard());
      const Shape unit = s.images(s.x.sequences, outputs_);  // without the leading 1
      s.positions.inner = unit.count(std::max(0, axes - 1));
    }
    const Shape biases = {kGates * outputs_};
    const size_t sizes[kOwnEnd] = {input_.weights.there() ? bytes_of(input_.conv.weights()) : 0,
                                   fixed_.weights.there() ? bytes_of(fixed_.conv.weights()) : 0,
                                   bytes_of(hidden_kind_.conv.weights()),
                                   bytes_of(biases),
                                   bytes_of(s.images(s.x.sequences, kGates * outputs_)),
                                   std::max(maximum, bytes_of(biases))};
    size_t at = aligned(workspace);
    for (int piece = 0; piece < kOwnEnd; ++piece) s.starts[piece] = at, at += sizes[piece];
    return lay_out(preparation, std::move(state), at);
  }

  template <typename Pass>
  void join_all(Context& context, const Pass& pass) const {
    const ConvState& s = state_of<ConvState>(pass);
    const auto join = [&](const Kind& kind, Own piece) {
      if (kind.weights.there())
        concat_gates(context, pass.parameters, kind.weights, kind.conv.groups,
                     s.weights_in(pass.workspace, piece, kind));
    };
    join(input_, kInputW);
    join(fixed_, kFixedW);
    join(hidden_kind_, kHiddenW);
    if (biases_.there()) concat_gates(context, pass.parameters, biases_, 1, biases_in(pass));
  }
  template <typename Pass>
  Tensor biases_in(const Pass& pass) const {
    if (!biases_.there()) return Tensor();
    return state_of<ConvState>(pass).own(pass.workspace, kBiases, {kGates * outputs_});
  }

  template <typename T>
  Peepholes<T> peepholes(const ConvState& s, const std::vector<Tensor>& parameters) const {
    if (peephole_ < 0) return {nullptr, nullptr, nullptr, s.positions};
    const auto of = [&](int gate) { return parameters[peephole_ + gate].template data<T>(); };
    return {of(0), of(1), of(2), s.positions};
  }

  void input_sums(Context& context, const Forward& pass) const override {
    const ConvState& s = state_of<ConvState>(pass);
    join_all(context, pass);
    if (input_.weights.there())
      s.input->forward(
          context, pass.bottom[0].reshaped(s.images(s.all_steps(), input_.conv.channels)),
          s.weights_in(pass.workspace, kInputW, input_), Tensor(),
          pass.saved[kSums].reshaped(s.images(s.all_steps(), kGates * outputs_)), pass.workspace);
    if (fixed_.weights.there())
      s.fixed->forward(context, pass.bottom[2], s.weights_in(pass.workspace, kFixedW, fixed_),
                       Tensor(),
                       part(pass, kFixedSums).reshaped(s.images(s.x.sequences, kGates * outputs_)),
                       pass.workspace);
  }

  void hidden_sums(Context& context, const Forward& pass, int64_t t) const override {
    const ConvState& s = state_of<ConvState>(pass);
    const Tensor sums =
        s.own(pass.workspace, kOfHidden, s.images(s.x.sequences, kGates * outputs_));
    on(sums, [&]<typename T>() {
      s.hidden_step->forward(context, s.step_of(pass.saved[kHiddenBefore], t, outputs_),
                             s.weights_in(pass.workspace, kHiddenW, hidden_kind_), biases_in(pass),
                             sums, pass.workspace);
      const T* fixed = has_fixed() ? part(pass, kFixedSums).template data<T>() : nullptr;
      parallel_rows(
          context, s.x.sequences * kGates, s.hidden,
          AddToGates<T>{s.hidden, input_.weights.there(), sums.data<T>(), fixed,
                        units_at<T>(s, pass.saved[kCells], t), peepholes<T>(s, pass.parameters),
                        sums_at<T>(s, pass.saved[kSums], t)});
    });
  }

  void begin_backward(Context& context, const Backward& pass) const override {
    join_all(context, pass);
  }

  void hidden_gradient(Context& context, const Backward& pass, int64_t t) const override {
    const ConvState& s = state_of<ConvState>(pass);
    const Tensor diff = part(pass, kSumsDiff);
    on(diff, [&]<typename T>() {
      s.hidden_step->backward_data(
          context, s.step_of(diff, t, kGates * outputs_),
          s.weights_in(pass.workspace, kHiddenW, hidden_kind_),
          part(pass, kHiddenDiff).reshaped(s.images(s.x.sequences, outputs_)), pass.workspace);
      if (peephole_ < 0) return;
      parallel_rows(
          context, s.x.sequences, s.hidden,
          AddToCells<T>{s.hidden, sums_at<T>(s, diff, t), peepholes<T>(s, pass.parameters),
                        part(pass, kCellDiff).template data<T>()});
    });
  }

  void outer_gradients(Context& context, const Backward& pass) const override {
    const ConvState& s = state_of<ConvState>(pass);
    const Tensor diff = part(pass, kSumsDiff);
    const Tensor images_diff = diff.reshaped(s.images(s.all_steps(), kGates * outputs_));
    if (s.hidden_gradient)
      weights_gradient(context, pass, hidden_kind_, *s.hidden_gradient,
                       pass.saved[kHiddenBefore].reshaped(s.images(s.all_steps(), outputs_)),
                       images_diff);
    biases_gradient(context, pass, diff);
    peepholes_gradient(context, pass, diff);
    if (input_.weights.there())
      kind_gradients(context, pass, input_, *s.input, kInputW,
                     pass.bottom[0].reshaped(s.images(s.all_steps(), input_.conv.channels)),
                     images_diff, pass.bottom_diff[0]);
    else if (const Tensor& dx = pass.bottom_diff[0])
      zero(context, dx);
    if (fixed_.weights.there())
      kind_gradients(
          context, pass, fixed_, *s.fixed, kFixedW, pass.bottom[2],
          fixed_sums_diff(context, pass).reshaped(s.images(s.x.sequences, kGates * outputs_)),
          pass.bottom_diff[2]);
  }

  void kind_gradients(Context& context, const Backward& pass, const Kind& kind, LinearKernel& conv,
                      Own piece, const Tensor& x, const Tensor& diff, const Tensor& dx) const {
    weights_gradient(context, pass, kind, conv, x, diff);
    if (!dx) return;
    const Tensor weights = state_of<ConvState>(pass).weights_in(pass.workspace, piece, kind);
    conv.backward_data(context, diff, weights, dx.reshaped(x.shape()), pass.workspace);
  }

  void weights_gradient(Context& context, const Backward& pass, const Kind& kind,
                        LinearKernel& conv, const Tensor& x, const Tensor& diff) const {
    bool wanted = false;
    for (int gate = 0; gate < kGates; ++gate)
      wanted = wanted || pass.parameter_diff[kind.weights.of(gate)];
    if (!wanted) return;
    const Tensor all = state_of<ConvState>(pass).weights_in(pass.workspace, kWeightsDiff, kind);
    conv.backward_weights(context, x, diff, all, Tensor(), false, false, pass.workspace);
    split_gates(context, all, kind.weights, kind.conv.groups, pass.parameter_diff, pass.accumulate);
  }

  void biases_gradient(Context& context, const Backward& pass, const Tensor& diff) const {
    if (!biases_.there()) return;
    const ConvState& s = state_of<ConvState>(pass);
    const Tensor all = s.own(pass.workspace, kWeightsDiff, {kGates * outputs_});
    on(diff, [&]<typename T>() {
      bias_gradient(context, s.all_steps(), kGates * outputs_, s.unit.count(1), diff.data<T>(),
                    all.data<T>(), false);
    });
    split_gates(context, all, biases_, 1, pass.parameter_diff, pass.accumulate);
  }

  void peepholes_gradient(Context& context, const Backward& pass, const Tensor& diff) const {
    if (peephole_ < 0) return;
    const ConvState& s = state_of<ConvState>(pass);
    const int64_t rows = s.all_steps() * s.hidden / (s.positions.count * s.positions.inner);
    on(diff, [&]<typename T>() {
      for (int gate = 0; gate < kPeepholes; ++gate) {
        const Tensor& dw = pass.parameter_diff[peephole_ + gate];
        if (!dw) continue;
        parallel_sum<T>(context, {s.positions.count, rows, s.positions.inner},
                        PeepholeTerm{diff.data<T>() + gate * s.hidden, pass.saved[kCells].raw(),
                                     s.hidden, s.positions},
                        {dw.data<T>(), T(1), pass.accumulate[peephole_ + gate] != 0});
      }
    });
  }

  int64_t multiply_adds(const std::vector<Shape>& bottoms,
                        const std::vector<Shape>&) const override {
    const Shape& x = bottoms[0];
    const auto of = [&](const Kind& kind, int64_t count) {
      return kind.weights.there() ? count * x.count(3) * kGates * kind.conv.gate_weights().count()
                                  : 0;
    };
    const int64_t all = x[0] * x[1];
    return of(input_, all) + of(fixed_, x[1]) + of(hidden_kind_, all);
  }

  int64_t outputs_ = 0;
  int spatial_axes_ = 2;
  int peephole_ = -1;  // index of the first of three parameters; -1: none
  GateIndices biases_;
  FillerParameter ones_;
  Kind input_, fixed_, hidden_kind_;
};

}  // namespace
REGISTER_LAYER(ConvLSTM, ConvLstmLayer);
}  // namespace crema
