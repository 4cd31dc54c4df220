// Recurrent operators.
#include "exchange/onnx/operator_import.h"
#include "proto/params/recurrent.pb.h"

namespace crema {
namespace {

// Rows of the gates i, o, f, c in the layer's order i, f, o, g.
std::vector<float> in_layer_order(const std::vector<float>& values, int64_t row) {
  std::vector<float> result;
  for (const int gate : {0, 2, 1, 3})
    result.insert(result.end(), values.begin() + gate * row, values.begin() + (gate + 1) * row);
  return result;
}

void check_lstm(const OperatorImport& op) {
  op.only_outputs(2);
  require(op.string_of("direction", "forward") == "forward", "only direction forward has a layer");
  require(!op.has_attribute("activations") && op.float_of("clip", 0) == 0 &&
              op.int_of("input_forget", 0) == 0 && op.int_of("layout", 0) == 0,
          "activations, clip, input_forget and layout have no layer");
  require(!op.has(4) && !op.has(7), "sequence_lens and peepholes have no layer");
  for (const int state : {5, 6}) {
    if (!op.has(state)) continue;
    for (const float value : op.constant(state, "the first state").as_floats())
      require(value == 0, "a first state that is not zero has no layer");
  }
}

// x (T, N, inputs) gives y (T, 1, N, hidden).
void read_lstm(OperatorImport& op) {
  check_lstm(op);
  const OnnxTensor &w = op.constant(1, "W"), &r = op.constant(2, "R");
  require(op.axes() == 3 && w.shape.axes() == 3 && w.shape[0] == 1 && w.shape[1] % 4 == 0 &&
              w.shape[2] == op.shape()[2],
          "W is ", w.shape.brief(), " for an input of ", op.shape().brief());
  const int64_t hidden = w.shape[1] / 4, inputs = w.shape[2];
  require(r.shape == Shape({1, 4 * hidden, hidden}), "R is ", r.shape.brief());
  std::vector<float> bias(4 * hidden);
  if (op.has(3)) {
    const std::vector<float> both = op.constant(3, "B").as_floats();
    require(static_cast<int64_t>(both.size()) == 8 * hidden, "B has ", both.size(), " values");
    for (int64_t i = 0; i < 4 * hidden; ++i) bias[i] = both[i] + both[4 * hidden + i];
  }
  const Shape x = op.shape();
  const std::string y =
      op.layer("Lstm", {op.blob(0)},
               [&](LayerParameter* layer) {
                 layer->mutable_lstm_param()->set_num_output(static_cast<uint32_t>(hidden));
               },
               {{Shape{4 * hidden, inputs}, in_layer_order(w.as_floats(), hidden * inputs)},
                {Shape{4 * hidden, hidden}, in_layer_order(r.as_floats(), hidden * hidden)},
                {Shape{4 * hidden}, in_layer_order(bias, hidden)}});
  // The second output is the last step.
  if (op.wanted(1)) op.give(op.reshape(op.cut(y, 0, x[0] - 1, x[0]), {1, x[1], hidden}), 1);
  if (op.wanted(0)) op.give(op.reshape(y, {x[0], 1, x[1], hidden}));
}
IMPORT_OPERATOR(LSTM, read_lstm);

}  // namespace
}  // namespace crema
