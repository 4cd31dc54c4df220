// Recurrent layers. Where every sequence begins with the batch an LSTM is ONNX's; otherwise Scan runs
// one step after the other, because ONNX has no counterpart to the indicators of continuation.
#include "exchange/onnx/layer_export.h"
#include "proto/params/recurrent.pb.h"

namespace crema {
namespace {

struct Recurrence {
  int gates = 1, states = 1;
  int input_weights = 0, bias = 1, fixed_weights = -1, hidden_weights = 2;  // parameters
  int output_weights = -1;  // RNN: followed by their bias
  int64_t steps = 0, sequences = 0, inputs = 0, hidden = 0;
  bool exposes = false;
  int first_state = 0;  // bottom with h before the first step, if it is exposed
};

Recurrence read_recurrence(LayerExport& layer, int gates, int states) {
  const bool forked = layer.type() != "LSTM" && layer.type() != "RNN";
  const Shape& x = layer.bottom_shape();
  Recurrence r;
  r.gates = gates;
  r.states = states;
  if (forked) {
    r.hidden_weights = 1;
    r.bias = 2;
  } else {
    r.exposes = layer.message().recurrent_param().expose_hidden();
    const bool fixed = layer.bottoms() > 2 + (r.exposes ? states : 0);
    if (fixed) {
      r.fixed_weights = 2;
      r.hidden_weights = 3;
    }
    r.first_state = 2 + fixed;
    if (layer.type() == "RNN") r.output_weights = r.hidden_weights + 1;
  }
  r.hidden = layer.parameter_shape(r.hidden_weights)[1];
  r.inputs = layer.parameter_shape(r.input_weights)[1];
  const LSTMParameter& p = layer.message().lstm_param();
  const bool merged = layer.type() == "Lstm" && (x.axes() != 3 || p.has_batch_size());
  r.sequences = merged ? p.batch_size() : x[1];
  r.steps = merged ? x[0] / r.sequences : x[0];
  return r;
}

bool begins_with_batch(const LayerExport& layer) {
  return layer.bottoms() < 2 || layer.maker_of(1) == "ContinuationIndicator";
}

// Rows of the gates i, f, o, g in ONNX's order i, o, f, g.
std::vector<float> in_onnx_order(const std::vector<float>& values) {
  const int64_t each = static_cast<int64_t>(values.size()) / 4;
  std::vector<float> result;
  for (const int gate : {0, 2, 1, 3})
    result.insert(result.end(), values.begin() + gate * each, values.begin() + (gate + 1) * each);
  return result;
}

std::string as_steps(LayerExport& layer, const Recurrence& r) {
  if (layer.bottom_shape().axes() == 3 && layer.bottom_shape()[1] == r.sequences)
    return layer.bottom();
  return layer.reshape(layer.bottom(), {-1, r.sequences, r.inputs});
}

void write_whole_lstm(LayerExport& layer, const Recurrence& r) {
  std::vector<float> bias = in_onnx_order(layer.parameter_values(r.bias));
  bias.resize(2 * bias.size());
  const std::string weights = layer.floats({1, 4 * r.hidden, r.inputs},
                                           in_onnx_order(layer.parameter_values(r.input_weights)));
  const std::string hidden = layer.floats({1, 4 * r.hidden, r.hidden},
                                          in_onnx_order(layer.parameter_values(r.hidden_weights)));
  const std::string y = layer.node(
      "LSTM", {as_steps(layer, r), weights, hidden, layer.floats({1, 8 * r.hidden}, bias)},
      {{"hidden_size", r.hidden}});
  layer.reshape_to_top(layer.squeeze(y, {1}));
}

// One step: states and results from the states before, the sums of the inputs and, unless it is
// empty, the name of the indicators.
class StepGraph {
 public:
  StepGraph(LayerExport& layer, const Recurrence& r) : layer_(layer), r_(r), body_(layer.opset()) {
    body_.at(layer.message().name() + ".step", "");
  }

  onnx::GraphProto made(bool indicated) {
    std::vector<std::string> before = {take("h", {r_.sequences, r_.hidden})};
    if (r_.states == 2) before.push_back(take("c", {r_.sequences, r_.hidden}));
    const std::string sums = take("sums", {r_.sequences, r_.gates * r_.hidden});
    if (indicated) {
      const std::string each = take("continues", {r_.sequences});
      const std::string column = op("Reshape", {each, body_.ints("column", {r_.sequences, 1})});
      for (std::string& state : before) state = op("Mul", {state, column});
    }
    const std::vector<float> given = layer_.parameter_values(r_.hidden_weights);
    const int64_t rows = r_.gates * r_.hidden;
    std::vector<float> weights(given.size());
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < r_.hidden; ++j) weights[j * rows + i] = given[i * r_.hidden + j];
    const std::string product =
        op("MatMul", {before[0], body_.floats("hidden_weights", {r_.hidden, rows}, weights)});
    const std::string gates = op("Add", {sums, product});
    std::string h, c;
    if (r_.states == 1) {
      h = op("Tanh", {gates});
    } else {
      const std::string i = op("Sigmoid", {gate(gates, 0)}), f = op("Sigmoid", {gate(gates, 1)});
      const std::string o = op("Sigmoid", {gate(gates, 2)}), g = op("Tanh", {gate(gates, 3)});
      c = op("Add", {op("Mul", {f, before[1]}), op("Mul", {i, g})});
      h = op("Mul", {o, op("Tanh", {c})});
    }
    give(h, "h_next");
    if (r_.states == 2) give(c, "c_next");
    give(h, "y");
    body_.write(&graph_);
    graph_.set_name("step");
    return graph_;
  }

 private:
  std::string op(const char* name, const std::vector<std::string>& inputs) {
    const std::string to = body_.unique(name);
    body_.add(name, inputs, {to});
    return to;
  }
  std::string gate(const std::string& gates, int64_t number) {
    return op("Slice", {gates, body_.ints("first", {number * r_.hidden}),
                        body_.ints("end", {(number + 1) * r_.hidden}), body_.ints("axis", {1})});
  }
  static void describe(onnx::ValueInfoProto* info, const std::string& name,
                       const std::vector<int64_t>& shape) {
    info->set_name(name);
    onnx::TypeProto::Tensor* type = info->mutable_type()->mutable_tensor_type();
    type->set_elem_type(onnx::TensorProto::FLOAT);
    for (const int64_t extent : shape) type->mutable_shape()->add_dim()->set_dim_value(extent);
  }
  std::string take(const char* name, const std::vector<int64_t>& shape) {
    body_.reserve(name);
    describe(graph_.add_input(), name, shape);
    return name;
  }
  void give(const std::string& value, const char* name) {
    body_.reserve(name);
    body_.add("Identity", {value}, {name});
    describe(graph_.add_output(), name, {r_.sequences, r_.hidden});
  }

  LayerExport& layer_;
  const Recurrence& r_;
  OnnxGraph body_;
  onnx::GraphProto graph_;
};

void write_recurrence(LayerExport& layer, int gates, int states) {
  const Recurrence r = read_recurrence(layer, gates, states);
  const bool indicated = !begins_with_batch(layer);
  if (!indicated && states == 2 && r.fixed_weights < 0 && !r.exposes)
    return write_whole_lstm(layer, r);
  if (layer.bottom_shape().axes() > 1 && layer.bottom_value().of_batch[1])
    layer.require_fixed_batch("the state of each sequence has a fixed size");

  std::string sums = layer.node("MatMul", {as_steps(layer, r), layer.transposed(r.input_weights)});
  sums = layer.node("Add", {sums, layer.parameter(r.bias)});
  if (r.fixed_weights >= 0) {
    const Shape& fixed = layer.bottom_shape(2);
    const std::string rows = layer.reshape(layer.bottom(2), {fixed[0], fixed.count(1)});
    sums =
        layer.node("Add", {sums, layer.node("MatMul", {rows, layer.transposed(r.fixed_weights)})});
  }
  std::vector<std::string> inputs;
  for (int state = 0; state < states; ++state) {
    inputs.push_back(
        r.exposes
            ? layer.reshape(layer.bottom(r.first_state + state), {r.sequences, r.hidden})
            : layer.floats({r.sequences, r.hidden}, std::vector<float>(r.sequences * r.hidden)));
  }
  inputs.push_back(sums);
  if (indicated) inputs.push_back(layer.reshape(layer.bottom(1), {-1, r.sequences}));
  std::vector<std::string> outputs;
  for (int state = 0; state < states; ++state)
    outputs.push_back(layer.graph().unique(layer.name("state")));
  outputs.push_back(layer.graph().unique(layer.name("all")));
  onnx::NodeProto* const scan =
      layer.graph().add("Scan", inputs, outputs, {{"num_scan_inputs", int64_t{1 + indicated}}});
  onnx::AttributeProto* const body = scan->add_attribute();
  body->set_name("body");
  body->set_type(onnx::AttributeProto::GRAPH);
  *body->mutable_g() = StepGraph(layer, r).made(indicated);
  std::string y = outputs.back();
  if (r.output_weights >= 0) {
    y = layer.node("MatMul", {y, layer.transposed(r.output_weights)});
    y = layer.node("Tanh", {layer.node("Add", {y, layer.parameter(r.output_weights + 1)})});
  }
  layer.reshape_to_top(y);
  for (int state = 0; r.exposes && state < states; ++state)
    layer.reshape_to_top(outputs[state], 1 + state);
}

void write_lstm(LayerExport& layer) { write_recurrence(layer, 4, 2); }
void write_rnn(LayerExport& layer) { write_recurrence(layer, 1, 1); }
EXPORT_LAYER(LSTM, write_lstm);
EXPORT_LAYER(Lstm, write_lstm);
EXPORT_LAYER(LstmAttention, write_lstm);
EXPORT_LAYER(RNN, write_rnn);

// One step after its matrix products.
void write_lstm_unit(LayerExport& layer) {
  const int64_t hidden = layer.bottom_shape(0)[2];
  const auto gate = [&](const char* op, int64_t number) {
    return layer.node(op,
                      {layer.slice(layer.bottom(1), 2, number * hidden, (number + 1) * hidden)});
  };
  const std::string before =
      layer.node("Mul", {layer.bottom(0), layer.unsqueeze(layer.bottom(2), {2})});
  const std::string kept = layer.node("Mul", {gate("Sigmoid", 1), before});
  const std::string added = layer.node("Mul", {gate("Sigmoid", 0), gate("Tanh", 3)});
  layer.write("Add", {kept, added}, {}, 0);
  layer.write("Mul", {gate("Sigmoid", 2), layer.node("Tanh", {layer.top(0)})}, {}, 1);
}
EXPORT_LAYER(LSTMUnit, write_lstm_unit);

void write_indicator(LayerExport& layer) { layer.write_constant_tops(); }
EXPORT_LAYER(ContinuationIndicator, write_indicator);

}  // namespace
}  // namespace crema
