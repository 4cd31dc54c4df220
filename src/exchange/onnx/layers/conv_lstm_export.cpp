// ConvLSTM: the inputs of all steps are convolved at once, and Scan runs the steps.
#include <algorithm>

#include "exchange/onnx/layer_export.h"
#include "layers/vision/spatial_params.h"
#include "proto/params/convolution.pb.h"
#include "proto/params/recurrent.pb.h"

namespace crema {
namespace {

constexpr int kConvGates = 4, kPeepholeGates = 3;

// The convolutions of one kind, of the gates i, f, o and g.
struct GateConvolutions {
  OnnxAttributes settings;
  int first = -1, step = 1;  // parameters of the weights
  bool bias = false;         // behind each

  int weights(int gate) const { return first + gate * step; }
};

class ConvLstmExport {
 public:
  explicit ConvLstmExport(LayerExport& layer)
      : layer_(layer), p_(layer.message().lstm_debug_param()), body_(layer.opset()) {
    const Shape& x = layer.bottom_shape();
    steps_ = x[0];
    sequences_ = x[1];
    exposes_ = layer.message().recurrent_param().expose_hidden();
    has_fixed_ = layer.bottoms() > 2 + (exposes_ ? 2 : 0);
    image_.assign(x.dims().begin() + 3, x.dims().end());
    outputs_ = layer.message().lstm_conv_param(0).num_output();
    int parameter = 0;
    if (!p_.ignore_x()) input_ = convolutions("hidden", false, &parameter);
    if (has_fixed_) fixed_ = convolutions("hidden", false, &parameter);
    const bool bias = description("input").bias_term();
    hidden_ = convolutions("input", bias, &parameter);
    if (!p_.disable_hadamard()) peephole_ = parameter;
  }

  void write() {
    if (layer_.bottom_value().of_batch[1])
      layer_.require_fixed_batch("the state of each sequence has a fixed size");
    std::vector<std::string> inputs;
    for (int state = 0; state < 2; ++state) {
      inputs.push_back(
          exposes_
              ? layer_.reshape(layer_.bottom(2 + has_fixed_ + state), state_shape())
              : layer_.floats(state_shape(), std::vector<float>(Shape(state_shape()).count())));
    }
    int scanned = 1;
    if (input_.first >= 0) {
      inputs.push_back(input_sums());
      ++scanned;
    }
    inputs.push_back(layer_.reshape(layer_.bottom(1), {-1, sequences_}));
    const std::vector<std::string> outputs = {layer_.graph().unique(layer_.name("h")),
                                              layer_.graph().unique(layer_.name("c")),
                                              layer_.graph().unique(layer_.name("all"))};
    if (has_fixed_) fixed_sums_ = sums_of(fixed_, layer_.bottom(2));
    onnx::NodeProto* const scan =
        layer_.graph().add("Scan", inputs, outputs, {{"num_scan_inputs", int64_t{scanned}}});
    onnx::AttributeProto* const body = scan->add_attribute();
    body->set_name("body");
    body->set_type(onnx::AttributeProto::GRAPH);
    *body->mutable_g() = step();
    layer_.reshape_to_top(outputs[2]);
    for (int state = 0; exposes_ && state < 2; ++state)
      layer_.reshape_to_top(outputs[state], 1 + state);
  }

 private:
  const ConvolutionParameter& description(const char* other) const {
    const auto& all = layer_.message().lstm_conv_param();
    return all[0].type() != other ? all[0] : all[1];
  }
  GateConvolutions convolutions(const char* other, bool bias, int* parameter) const {
    ConvolutionParameter p = description(other);
    p.set_axis(0);
    std::vector<int64_t> image = image_;
    image.insert(image.begin(), outputs_);
    const SpatialParams spatial = spatial_params(p, Shape(image));
    std::vector<int64_t> pads = spatial.pad;
    pads.insert(pads.end(), spatial.pad.begin(), spatial.pad.end());
    GateConvolutions made{{{"kernel_shape", spatial.kernel},
                           {"pads", pads},
                           {"dilations", spatial.dilation},
                           {"group", static_cast<int64_t>(p.group())}},
                          *parameter,
                          bias ? 2 : 1,
                          bias};
    *parameter += kConvGates * made.step;
    return made;
  }
  std::vector<int64_t> state_shape() const {
    std::vector<int64_t> shape = {sequences_, outputs_};
    shape.insert(shape.end(), image_.begin(), image_.end());
    return shape;
  }

  // The convolutions of all gates, concatenated along the channels.
  std::string sums_of(const GateConvolutions& gates, const std::string& x) {
    std::vector<std::string> sums;
    for (int gate = 0; gate < kConvGates; ++gate)
      sums.push_back(
          layer_.node("Conv", {x, layer_.parameter(gates.weights(gate))}, gates.settings));
    return layer_.node("Concat", sums, {{"axis", int64_t{1}}});
  }
  std::string input_sums() {
    const Shape& x = layer_.bottom_shape();
    std::vector<int64_t> images(x.dims().begin() + 2, x.dims().end());
    images.insert(images.begin(), -1);
    const std::string sums = sums_of(input_, layer_.reshape(layer_.bottom(), images));
    std::vector<int64_t> by_steps = state_shape();
    by_steps[1] *= kConvGates;
    by_steps.insert(by_steps.begin(), -1);
    return layer_.reshape(sums, by_steps);
  }

  std::string op(const char* name, const std::vector<std::string>& inputs,
                 const OnnxAttributes& settings = {}) {
    const std::string to = body_.unique(name);
    body_.add(name, inputs, {to}, settings);
    return to;
  }
  std::string constant(const char* name, int parameter, std::vector<int64_t> shape = {}) {
    if (shape.empty()) shape = layer_.parameter_shape(parameter).dims();
    return body_.floats(name, shape, layer_.parameter_values(parameter));
  }
  void describe(onnx::ValueInfoProto* info, const std::string& name,
                const std::vector<int64_t>& shape) {
    body_.reserve(name);
    info->set_name(name);
    onnx::TypeProto::Tensor* type = info->mutable_type()->mutable_tensor_type();
    type->set_elem_type(onnx::TensorProto::FLOAT);
    for (const int64_t extent : shape) type->mutable_shape()->add_dim()->set_dim_value(extent);
  }
  std::string part_of(const std::string& sums, int gate) {
    return op("Slice", {sums, body_.ints("first", {gate * outputs_}),
                        body_.ints("end", {(gate + 1) * outputs_}), body_.ints("axis", {1})});
  }
  // The weight of the cell state in a gate, in a shape that broadcasts to the state's.
  std::string peephole(int gate) {
    const Shape& shape = layer_.parameter_shape(peephole_ + gate);
    const auto all = static_cast<int64_t>(image_.size()) + 3;  // axes with the leading 1
    const int64_t end = p_.axis_hadamard() + p_.num_axes_hadamard();
    std::vector<int64_t> extents = shape.dims();
    if (extents.size() == static_cast<size_t>(all)) extents.erase(extents.begin());
    for (int64_t axis = std::max<int64_t>(end, 1); axis < all; ++axis) extents.push_back(1);
    return constant("peephole", peephole_ + gate, extents);
  }

  onnx::GraphProto step() {
    onnx::GraphProto graph;
    body_.at(layer_.message().name() + ".step", "");
    describe(graph.add_input(), "h", state_shape());
    describe(graph.add_input(), "c", state_shape());
    std::vector<int64_t> sums = state_shape();
    sums[1] *= kConvGates;
    if (input_.first >= 0) describe(graph.add_input(), "sums", sums);
    describe(graph.add_input(), "continues", {sequences_});
    std::vector<int64_t> column(state_shape().size(), 1);
    column[0] = sequences_;
    const std::string continues = op("Reshape", {"continues", body_.ints("column", column)});
    const std::string hidden = op("Mul", {"h", continues}), cell = op("Mul", {"c", continues});
    std::string gates[kConvGates];
    for (int gate = 0; gate < kConvGates; ++gate) {
      const int weights = hidden_.weights(gate);
      std::vector<std::string> inputs = {hidden, constant("weights", weights)};
      if (hidden_.bias) inputs.push_back(constant("bias", weights + 1));
      std::string sum = op("Conv", inputs, hidden_.settings);
      if (input_.first >= 0) sum = op("Add", {part_of("sums", gate), sum});
      if (!fixed_sums_.empty()) sum = op("Add", {sum, part_of(fixed_sums_, gate)});
      if (peephole_ >= 0 && gate < kPeepholeGates)
        sum = op("Add", {sum, op("Mul", {"c", peephole(gate)})});
      gates[gate] = op(gate < kPeepholeGates ? "Sigmoid" : "Tanh", {sum});
    }
    const std::string next =
        op("Add", {op("Mul", {gates[1], cell}), op("Mul", {gates[0], gates[3]})});
    const std::string result = op("Mul", {gates[2], op("Tanh", {next})});
    const std::string given[] = {result, next, result};
    const char* names[] = {"h_next", "c_next", "y"};
    for (int i = 0; i < 3; ++i) {
      describe(graph.add_output(), names[i], state_shape());
      body_.add("Identity", {given[i]}, {names[i]});
    }
    body_.write(&graph);
    graph.set_name("step");
    return graph;
  }

  LayerExport& layer_;
  const LSTMDebugParameter& p_;
  OnnxGraph body_;
  std::vector<int64_t> image_;  // spatial extents
  int64_t steps_ = 0, sequences_ = 0, outputs_ = 0;
  bool exposes_ = false, has_fixed_ = false;
  GateConvolutions input_, fixed_, hidden_;
  int peephole_ = -1;
  std::string fixed_sums_;
};

void write_conv_lstm(LayerExport& layer) { ConvLstmExport(layer).write(); }
EXPORT_LAYER(ConvLSTM, write_conv_lstm);

}  // namespace
}  // namespace crema
