// Layers that compute with 8-bit integers, in an ONNX graph on its way to C.
#pragma once

#include "proto/onnx.pb.h"

namespace crema {

// A Conv or Gemm of rounded values and weights becomes a QuantizedConv or QuantizedGemm of the integers,
// with the inputs x, step of x, weights, steps of the weights, and bias: int32, float or absent. A
// QuantizeLinear moves in front of poolings, Relu and reshapes that follow such a product, which then
// writes integers. Other constants behind a DequantizeLinear become floats.
void fuse_integers(onnx::GraphProto* graph);

}  // namespace crema
