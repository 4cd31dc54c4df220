// What the recurrent operators LSTM, GRU and RNN have in common: directions, layouts and states.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "exchange/onnx/operator_import.h"

namespace crema {

// One direction: its rows of W, R and B.
struct RecurrentWeights {
  std::vector<float> w, r;    // (gates * hidden, inputs), (gates * hidden, hidden)
  std::vector<float> wb, rb;  // (gates * hidden)
};

// The results of one direction, its first step first; states are (1, sequences, hidden).
struct RecurrentResult {
  std::string steps;  // (steps, sequences, hidden)
  std::string last, last_cell;
};

class RecurrentImport {
 public:
  // activations: the default names of one direction, in lower case.
  RecurrentImport(OperatorImport& op, int64_t gates, const std::vector<std::string>& activations);

  int64_t steps() const { return steps_; }
  int64_t sequences() const { return sequences_; }
  int64_t inputs() const { return inputs_; }
  int64_t hidden() const { return hidden_; }
  const std::vector<std::string>& activations() const { return activations_; }

  // Computes every direction and gives the outputs. x: (steps, sequences, inputs), in the order of
  // the direction.
  using Compute = std::function<RecurrentResult(const std::string& x, int direction)>;
  void run(const Compute& compute);

  RecurrentWeights weights(int direction) const;
  // The first state, (1, sequences, hidden), of input 5 or 6; "": zero.
  std::string first_state(int input, int direction);

 private:
  OperatorImport& op_;
  const int64_t gates_;
  int64_t steps_ = 0, sequences_ = 0, inputs_ = 0, hidden_ = 0;
  int directions_ = 1;
  bool reversed_ = false, sequences_first_ = false;
  std::vector<std::string> activations_;
};

}  // namespace crema
