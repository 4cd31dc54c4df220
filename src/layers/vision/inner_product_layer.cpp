// InnerProduct (fully connected): every output is a weighted sum of all inputs of a sample.
//   y[m,n] = b[n] + sum over k of x[m,k] * w[n,k]
// Shapes: x the axes before `axis` form m and the rest k; y keeps the former and has num_output
// instead of the latter.
// Parameters: w (num_output, K), or (K, num_output) with transpose; b (num_output) unless bias_term
// is false. A second bottom gives w instead (NormFace), and with it num_output; a third gives b.
// With normalize (a fork) forward first L2-normalizes each row of w, w / sqrt(|w|^2 + 1e-6), in
// place.
// With quantization_param x and w are rounded to integers of few bits (crema quantize); gradients pass
// the rounding unchanged. Not with transpose or normalize.
// Gradient: dx = dy w, dw = dy' x, db sums dy over m. SparseInnerProduct (forks for text) is the
// same: SparseData's vectors are stored dense here. InnerProduct+ReLU is the same followed by a
// ReLU (relu_param), InnerProduct+ReLU+Dropout by a ReLU and a dropout (dropout_param); the planner
// makes them.
#include <algorithm>

#include "kernels/conv/dense.h"
#include "kernels/move/reorder.h"
#include "kernels/norm/l2_normalize.h"
#include "layers/layer.h"
#include "layers/pointwise/dropout_params.h"
#include "layers/vision/dense_weights.h"
#include "layers/vision/layer_quantization.h"
#include "layers/vision/product_of_bottoms.h"
#include "proto/layer.pb.h"
#include "proto/params/activation.pb.h"
#include "proto/params/dense.pb.h"
#include "tensor/on.h"
#include "tensor/part.h"

namespace crema {
namespace {

class InnerProductLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::dense, .learned = 1, .quantizes = true};

  explicit InnerProductLayer(bool takes_weights = false) : takes_weights_(takes_weights) {}

 private:
  Arity bottoms() const override { return {1, takes_weights_ ? 3 : 1}; }
  // If samples are images, the weights' columns are stored in their order.
  OrderRule order_rule() const {
    return axis_ == 1 && !transposed_ && !normalized_ && !given_ ? OrderRule::any
                                                                 : OrderRule::row_major;
  }
  // With given weights, only the input's rows are samples.
  bool independent_along(int bottom, int axis, const std::vector<Shape>&) const override {
    return bottom == 0 && axis < axis_;
  }
  HalfRule half_rule() const { return normalized_ || given_ ? HalfRule::never : HalfRule::prefers; }
  LayerTraits traits() const override {
    return {.order_rule = order_rule(),
            .half_rule = half_rule(),
            .reads = {true, relu_.on},
            .changes_parameters = normalized_};
  }
  Edge top_edge() const override {
    return {.relu = relu_.on && relu_.slope == 0, .relu_factor = dropout_.factor};
  }

  void setup(Context& context, const std::vector<Shape>& bottoms) override {
    const InnerProductParameter& p = params<InnerProductParameter>();
    given_ = bottoms.size() > 1;
    if (given_) return set_up_given(bottoms);
    require(
        p.num_output() > 0,
        "inner_product_param has no num_output (or 0): how many values should each sample get?");
    axis_ = bottoms[0].canonical_axis(p.axis());
    outputs_ = p.num_output();
    inputs_ = bottoms[0].count(axis_);
    transposed_ = p.transpose();
    bias_ = p.bias_term();
    normalized_ = p.normalize();
    require(
        !normalized_ || !transposed_,
        "inner_product_param has normalize and transpose, which do not go together: rows of the "
        "weights must be outputs");
    quantization_ = layer_quantization(message().quantization_param(), outputs_);
    if (quantization_ && (transposed_ || normalized_)) {
      context.log().warning(cat(name(),
                                ": quantization_param has no effect with transpose or normalize; "
                                "the layer computes in float32"));
      quantization_.reset();
    }
    if (fuses("ReLU")) relu_ = {true, params<ReLUParameter>().negative_slope()};
    if (fuses("Dropout")) dropout_ = DropoutParams(params<DropoutParameter>(), training());
    add_parameter(transposed_ ? Shape{inputs_, outputs_} : Shape{outputs_, inputs_},
                  p.weight_filler());
    if (bias_) add_parameter({outputs_}, p.bias_filler());
  }

  void set_up_given(const std::vector<Shape>& bottoms) {
    const InnerProductParameter& p = params<InnerProductParameter>();
    axis_ = bottoms[0].canonical_axis(p.axis());
    inputs_ = bottoms[0].count(axis_);
    transposed_ = p.transpose();
    bias_ = p.bias_term();
    require(bias_ || bottoms.size() < 3,
            "the third bottom is the bias, but inner_product_param has bias_term: false");
    if (bias_ && bottoms.size() == 2) add_parameter({outputs_of(bottoms[1])}, p.bias_filler());
  }

  // For weights that are a bottom.
  int64_t outputs_of(const Shape& w) const {
    require(w.count() % inputs_ == 0, "the second bottom, the weights, is ", w.brief(),
            ", but must have rows of ", inputs_, " values, as many as a sample");
    return w.count() / inputs_;
  }

  bool give_bias(LayerParameter* message) const override {
    if (given_ || transposed_ || normalized_ || axis_ != 1 || quantization_) return false;
    message->mutable_inner_product_param()->set_bias_term(true);
    return true;
  }

  // The kernels' fused dropout supports only tops without spatial axes. A top that is rounded is rounded
  // before a ReLU.
  bool is_profitable(const Context&, const std::vector<Shape>&, Precision) const override {
    return (axis_ == 1 || !dropout_.changes()) && !(quantization_ && quantization_->y);
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape& x = bottoms[0];
    require(x.count(axis_) == inputs_, "the bottom has shape ", x.brief(), ", that is ",
            x.count(axis_), " values a sample, but the weights were made for ", inputs_);
    Shape y;
    for (int axis = 0; axis < axis_; ++axis) y.push_back(x[axis]);
    y.push_back(given_ ? outputs_of(bottoms[1]) : outputs_);
    if (given_ && bias_) {
      const int64_t values = bottoms.size() > 2 ? bottoms[2].count() : parameters()[0].shape[0];
      require(values == y[axis_], "the bias has ", values, " values, but there are ", y[axis_],
              " rows of weights");
    }
    return {{y}, {}};
  }

  struct State : LayerState {
    std::unique_ptr<LinearKernel> kernel;  // if the weights are parameters
    ProductOfBottoms product;              // if they are a bottom
    bool fused_relu = false;               // by all readers: see Edge
  };

  Prepared prepare(Context& context, const Preparation& preparation) const override {
    Prepared prepared;
    State& state = prepared.make_state<State>();
    if (given_) {
      state.product = {preparation.bottoms[0].count(0, axis_), inputs_,
                       outputs_of(preparation.bottoms[1]), transposed_, preparation.precision};
      return prepared;
    }
    DenseCase c;
    c.rows = preparation.bottoms[0].count(0, axis_);
    c.inputs = inputs_;
    c.outputs = outputs_;
    c.transposed = transposed_;
    c.bias = bias_;
    c.relu = relu_;
    c.relu_gradient_applied = state.fused_relu = preparation.top_edge.relu;
    c.dropout = dropout_.drops;
    c.backward_data = preparation.bottom_needs_diff[0];
    c.backward_weights = preparation.parameter_needs_diff[0];
    c.dtype = preparation.storage;
    c.precision = preparation.precision;
    c.quantization = quantization_in(preparation, quantization_);
    // Weights that are not rounded stay in rows.
    c.packs_weights = c.quantization && c.quantization->w && preparation.packs_weights;
    std::unique_ptr<LinearKernel>& kernel = state.kernel;
    kernel = make_dense(context, c);
    const Format weights = dense_weights_format(preparation);
    const Shape& w = parameters()[0].shape;
    const Format given = preparation.parameter_formats[0].value_or(weights);
    if (kernel->packed_form().bytes > 0) {
      prepared.packed = pack_by(*kernel, weights);
    } else if (!same_layout(given, weights, w)) {
      kernel = with_weights_in(given, std::move(kernel), w, c.dtype, weights);
    }
    prepared.parameter_formats.resize(parameters().size());
    prepared.parameter_formats[0] = given;
    prepared.half_parameters.assign(parameters().size(), is_half(c.dtype));
    prepared.workspace = kernel->workspace();
    if (state.fused_relu) prepared.reads = {true, false};
    if (normalized_) {
      const size_t lengths = static_cast<size_t>(outputs_) * size_of(preparation.dtype);
      prepared.workspace = std::max(prepared.workspace, lengths);
    }
    return prepared;
  }

  // The kernel packs rows whose columns are in this order.
  static Prepared::Packed pack_by(const LinearKernel& kernel, const Format& columns) {
    const LinearKernel::PackedForm form = kernel.packed_form();
    return {cat(form.name, ", points ", columns.points), form.bytes,
            [&kernel, columns](Context& context, const Tensor& rows, const Tensor& packed) {
              if (columns.points == 0) return kernel.pack(context, rows, packed);
              const Tensor ordered(context, rows.shape(), rows.dtype(), columns);
              reorder(context, rows, ordered);
              kernel.pack(context, part_of(ordered, 0, rows.shape(), rows.dtype()), packed);
            }};
  }

  // The same mask in backward as in the corresponding forward pass.
  template <typename Pass>
  DropoutMask mask(const Context& context, const Pass& pass) const {
    return dropout_.mask(context.random(id(), pass.pass, pass.live_pass), pass.share);
  }

  void forward(Context& context, const Forward& pass) const override {
    const State& state = state_of<State>(pass);
    if (given_) {
      const Tensor b = !bias_                  ? Tensor()
                       : !parameters().empty() ? pass.parameters[0]
                                               : pass.bottom[2];
      return state.product.forward(context, pass.bottom[0], pass.bottom[1], b, pass.top[0]);
    }
    if (normalized_) l2_normalize_rows(context, 1e-6, pass.parameters[0], pass.workspace);
    const Tensor &x = pass.bottom[0], &w = pass.parameters[0], &y = pass.top[0];
    const Tensor b = bias_ ? pass.parameters[1] : Tensor();
    if (!dropout_.changes()) return state.kernel->forward(context, x, w, b, y, pass.workspace);
    state.kernel->forward_with_dropout(context, x, w, b, y, mask(context, pass), pass.workspace);
  }

  void backward_given(Context& context, const Backward& pass) const {
    Tensor db;
    if (bias_) db = !parameters().empty() ? pass.parameter_diff[0] : pass.bottom_diff[2];
    state_of<State>(pass).product.backward(
        context, pass.bottom[0], pass.bottom[1], pass.top_diff[0], pass.bottom_diff[0],
        pass.bottom_diff[1], db, bias_ && !parameters().empty() && pass.accumulate[0]);
  }

  void backward(Context& context, const Backward& pass) const override {
    if (given_) return backward_given(context, pass);
    const State& state = state_of<State>(pass);
    LinearKernel& kernel = *state.kernel;
    const Tensor &dy = pass.top_diff[0], &dw = pass.parameter_diff[0];
    const Tensor db = bias_ ? pass.parameter_diff[1] : Tensor();
    const bool masks = relu_.on && !state.fused_relu, simple = relu_.slope == 0;
    if (masks && !simple && dropout_.changes()) dropout(context, mask(context, pass), dy, dy);
    // Dropped values are zero in y, like those cut off by a ReLU without slope: only the factor
    // remains.
    const float factor = masks && simple ? dropout_.factor : 1;
    const bool adds_db = db && pass.accumulate[1];
    const auto begin = [&] {
      return begin_backward(
          context, kernel.features(), dy.reshaped({dy.count() / outputs_, outputs_}),
          masks ? pass.top[0] : Tensor(), {relu_.slope, factor}, db, adds_db, bool(dw));
    };
    // Without a ReLU it computes only db: on dw's stream.
    FusedGradients fused;
    if (masks || !dw) fused = begin();
    OutputGradient g = fused.relu ? OutputGradient(dy, pass.top[0]) : OutputGradient(dy);
    if (fused.relu) g.factor = factor;
    const auto bottom = [&] {
      if (const Tensor& dx = pass.bottom_diff[0])
        kernel.backward_data(context, g, pass.parameters[0], dx, pass.workspace);
    };
    if (!dw) return bottom();
    const auto weights = [&] {
      if (!masks) fused = begin();
      kernel.backward_weights(context, pass.bottom[0], g, dw, fused.db, pass.accumulate[0], adds_db,
                              pass.side_workspace);
    };
    context.on_side_stream(pass.side_stream, weights, bottom);
  }

  int64_t multiply_adds(const std::vector<Shape>&, const std::vector<Shape>& tops) const override {
    return tops[0].count() * inputs_;
  }

  const bool takes_weights_;  // further bottoms may give weights and bias
  int axis_ = 1;
  int64_t inputs_ = 0, outputs_ = 0;
  bool transposed_ = false, bias_ = true, normalized_ = false;
  bool given_ = false;  // the weights are a bottom
  Relu relu_;
  DropoutParams dropout_;
  std::optional<LinearQuantization> quantization_;
};

REGISTER_FUSED(InnerProductLayer, "InnerProduct+ReLU", "InnerProduct+ReLU+Dropout");

}  // namespace
REGISTER_LAYER(InnerProduct, InnerProductLayer, true);
REGISTER_LAYER(SparseInnerProduct, InnerProductLayer);
}  // namespace crema
