// A small training net with a dropout and a loss.
#pragma once

namespace crema::tests {

constexpr const char* kDropoutNet = R"(
  layer { name: "data" type: "Input" top: "data" top: "label" input_param { shape { dim: 4 dim: 1 dim: 6 dim: 6 } shape { dim: 4 } } }
  layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
    convolution_param { num_output: 5 kernel_size: 3 weight_filler { type: "xavier" } } }
  layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
  layer { name: "drop" type: "Dropout" bottom: "conv" top: "conv" }
  layer { name: "ip" type: "InnerProduct" bottom: "conv" top: "ip"
    inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
  layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" top: "prob" }
)";

}  // namespace crema::tests
