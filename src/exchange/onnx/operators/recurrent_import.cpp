// Recurrent operators, and LSTM, which is a layer for each direction.
#include "exchange/onnx/operators/recurrent_import.h"

#include <algorithm>

#include "base/strings.h"
#include "proto/params/recurrent.pb.h"
#include "proto/params/shape.pb.h"

namespace crema {

namespace {

bool all_zero(const OnnxTensor& tensor) {
  const std::vector<float> values = tensor.as_floats();
  return std::all_of(values.begin(), values.end(), [](float value) { return value == 0; });
}

std::string reversed_steps(OperatorImport& op, const std::string& x) {
  return op.layer("Reverse", {x},
                  [](LayerParameter* layer) { layer->mutable_reverse_param()->set_axis(0); });
}

std::string joined_along(OperatorImport& op, const std::vector<std::string>& parts, int axis) {
  if (parts.size() == 1) return parts[0];
  return op.layer("Concat", parts,
                  [&](LayerParameter* layer) { layer->mutable_concat_param()->set_axis(axis); });
}

}  // namespace

RecurrentImport::RecurrentImport(OperatorImport& op, int64_t gates,
                                 const std::vector<std::string>& activations)
    : op_(op), gates_(gates), activations_(activations) {
  const std::string direction = op.string_of("direction", "forward");
  require(direction == "forward" || direction == "reverse" || direction == "bidirectional",
          "direction is \"", direction, "\"");
  directions_ = direction == "bidirectional" ? 2 : 1;
  reversed_ = direction == "reverse";
  sequences_first_ = op.int_of("layout", 0) != 0;
  require(op.float_of("clip", 0) == 0, "clip has no layer");
  const std::vector<std::string> given = op.strings_of("activations");
  require(given.empty() || given.size() == directions_ * activations.size(), "activations has ",
          given.size(), " names");
  for (size_t i = 0; i < given.size(); ++i) {
    const std::string name = lower_case(given[i]);
    std::string& of_first = activations_[i % activations.size()];
    if (i < activations.size()) of_first = name;
    require(of_first == name, "its directions have different activations");
  }
  require(op.axes() == 3, "its input is ", op.shape().brief());
  const Shape &w = op.constant(1, "W").shape, &r = op.constant(2, "R").shape;
  steps_ = op.shape()[sequences_first_ ? 1 : 0];
  sequences_ = op.shape()[sequences_first_ ? 0 : 1];
  inputs_ = op.shape()[2];
  require(w.axes() == 3 && w[0] == directions_ && w[1] > 0 && w[1] % gates == 0 && w[2] == inputs_,
          "W is ", w.brief(), " for an input of ", op.shape().brief());
  hidden_ = w[1] / gates;
  require(op.int_of("hidden_size", hidden_) == hidden_, "hidden_size is ",
          op.int_of("hidden_size", hidden_), ", but W of ", w.brief(), " is for ", hidden_);
  require(r == Shape({directions_, w[1], hidden_}), "R is ", r.brief());
  if (op.has(3)) {
    require(op.constant(3, "B").shape.count() == 2 * directions_ * w[1], "B has ",
            op.shape(3).brief(), " values");
  }
  if (op.has(4)) {
    for (const int64_t length : op.ints(4, "sequence_lens"))
      require(length == steps_, "sequences of different lengths have no layer");
  }
}

RecurrentWeights RecurrentImport::weights(int direction) const {
  const auto part = [&](int input, const char* what, int64_t first, int64_t count) {
    const std::vector<float> all = op_.constant(input, what).as_floats();
    return std::vector<float>(all.begin() + first, all.begin() + first + count);
  };
  const int64_t rows = gates_ * hidden_, d = direction;
  RecurrentWeights weights;
  weights.w = part(1, "W", d * rows * inputs_, rows * inputs_);
  weights.r = part(2, "R", d * rows * hidden_, rows * hidden_);
  weights.wb = weights.rb = std::vector<float>(rows);
  if (op_.has(3)) {
    weights.wb = part(3, "B", 2 * d * rows, rows);
    weights.rb = part(3, "B", (2 * d + 1) * rows, rows);
  }
  return weights;
}

std::string RecurrentImport::first_state(int input, int direction) {
  if (!op_.has(input) || (op_.is_constant(input) && all_zero(op_.constant(input, "a state"))))
    return "";
  std::string state = op_.blob(input);
  if (sequences_first_) state = op_.permute(state, {1, 0, 2});
  require(op_.blob_shape(state) == Shape({directions_, sequences_, hidden_}), "the first state is ",
          op_.blob_shape(state).brief());
  return op_.cut(state, 0, direction, direction + 1);
}

void RecurrentImport::run(const Compute& compute) {
  std::string x = op_.blob(0);
  if (sequences_first_) x = op_.permute(x, {1, 0, 2});
  std::vector<std::string> all, last, cells;
  for (int direction = 0; direction < directions_; ++direction) {
    const bool backwards = reversed_ || direction == 1;
    const RecurrentResult result = compute(backwards ? reversed_steps(op_, x) : x, direction);
    if (op_.wanted(0)) {
      const std::string steps = backwards ? reversed_steps(op_, result.steps) : result.steps;
      all.push_back(op_.reshape(steps, {steps_, 1, sequences_, hidden_}));
    }
    if (op_.wanted(1)) last.push_back(result.last);
    if (op_.wanted(2)) cells.push_back(result.last_cell);
  }
  if (op_.wanted(0)) {
    const std::string y = joined_along(op_, all, 1);
    op_.give(sequences_first_ ? op_.permute(y, {2, 0, 1, 3}) : y, 0);
  }
  const auto give_states = [&](const std::vector<std::string>& states, int output) {
    if (!op_.wanted(output)) return;
    const std::string y = joined_along(op_, states, 0);
    op_.give(sequences_first_ ? op_.permute(y, {1, 0, 2}) : y, output);
  };
  give_states(last, 1);
  give_states(cells, 2);
}

namespace {

// Rows of the gates i, o, f, c in the layer's order i, f, o, g.
std::vector<float> in_layer_order(const std::vector<float>& values, int64_t row) {
  std::vector<float> result;
  for (const int gate : {0, 2, 1, 3})
    result.insert(result.end(), values.begin() + gate * row, values.begin() + (gate + 1) * row);
  return result;
}

// The layer LSTM takes and gives states, Lstm begins with zero.
RecurrentResult lstm_with_states(OperatorImport& op, RecurrentImport& of, const std::string& x,
                                 const std::vector<std::string>& states, LayerBlob w, LayerBlob b,
                                 LayerBlob r) {
  std::vector<std::string> bottoms = {x};
  const auto constant = [&](const Shape& shape, float value) {
    const std::string blob = op.parameter(shape, std::vector<float>(shape.count(), value));
    keep_parameters(&op.graph().maker_of(blob)->message, 1);
    return blob;
  };
  bottoms.push_back(constant({of.steps(), of.sequences()}, 1));
  for (const std::string& state : states)
    bottoms.push_back(state.empty() ? constant({1, of.sequences(), of.hidden()}, 0) : state);
  const std::vector<std::string> tops =
      op.layer_with_tops("LSTM", bottoms, 3,
                         [&](LayerParameter* layer) {
                           RecurrentParameter* const p = layer->mutable_recurrent_param();
                           p->set_num_output(static_cast<uint32_t>(of.hidden()));
                           p->set_expose_hidden(true);
                         },
                         {std::move(w), std::move(b), std::move(r)});
  return {tops[0], tops[1], tops[2]};
}

// x (T, N, inputs) gives y (T, directions, N, hidden).
void read_lstm(OperatorImport& op) {
  const std::vector<std::string> usual = {"sigmoid", "tanh", "tanh"};
  RecurrentImport of(op, 4, usual);
  require(of.activations() == usual && op.int_of("input_forget", 0) == 0 && !op.has(7),
          "other activations, input_forget and peepholes have no layer");
  const int64_t hidden = of.hidden(), steps = of.steps();
  of.run([&](const std::string& x, int direction) -> RecurrentResult {
    RecurrentWeights weights = of.weights(direction);
    std::vector<float> bias = weights.wb;
    for (size_t i = 0; i < bias.size(); ++i) bias[i] += weights.rb[i];
    LayerBlob w{Shape{4 * hidden, of.inputs()}, in_layer_order(weights.w, hidden * of.inputs())};
    LayerBlob r{Shape{4 * hidden, hidden}, in_layer_order(weights.r, hidden * hidden)};
    LayerBlob b{Shape{4 * hidden}, in_layer_order(bias, hidden)};
    const std::vector<std::string> states = {of.first_state(5, direction),
                                             of.first_state(6, direction)};
    if (op.wanted(2) || !states[0].empty() || !states[1].empty())
      return lstm_with_states(op, of, x, states, std::move(w), std::move(b), std::move(r));
    RecurrentResult result;
    result.steps =
        op.layer("Lstm", {x},
                 [&](LayerParameter* layer) {
                   layer->mutable_lstm_param()->set_num_output(static_cast<uint32_t>(hidden));
                 },
                 {std::move(w), std::move(r), std::move(b)});
    if (op.wanted(1)) result.last = op.cut(result.steps, 0, steps - 1, steps);
    return result;
  });
}
IMPORT_OPERATOR(LSTM, read_lstm);

}  // namespace
}  // namespace crema
