// A net with a layer that hands something from batch to batch.
#pragma once

namespace crema::tests {

inline constexpr const char* kSequence = R"(
  layer { name: "data" type: "DummyData" top: "x" top: "y" top: "cont"
    dummy_data_param { shape { dim: 3 dim: 2 dim: 5 } shape { dim: 3 dim: 2 dim: 4 } shape { dim: 3 dim: 2 }
      data_filler { type: "gaussian" std: 1 } data_filler { type: "gaussian" std: 1 }
      data_filler { type: "constant" value: 1 } } }
  layer { name: "lstm" type: "LSTM" bottom: "x" bottom: "cont" top: "h" recurrent_param { num_output: 4
    weight_filler { type: "gaussian" std: 0.5 } } }
  layer { name: "loss" type: "EuclideanLoss" bottom: "h" bottom: "y" top: "loss" }
)";

}  // namespace crema::tests
