// Pairs of QuantizeLinear and DequantizeLinear, in the places where runtimes look for them to compute with
// integers: around the inputs of a product.
#pragma once

#include <string>
#include <vector>

#include "exchange/onnx/onnx_graph.h"
#include "kernels/conv/quantized/quantization.h"
#include "tensor/shape.h"

namespace crema {

// Each returns the name of the rounded value. Error for integers that do not have 8 bits, and for rows with
// different steps before opset 13.
// Layers that round a value alike share it.
std::string round_values(OnnxGraph& graph, const std::string& x, const QuantizedValues& values);
// The same for a value that a layer writes.
void write_rounded(OnnxGraph& graph, const std::string& x, const std::string& to,
                   const QuantizedValues& values);
// Weights are stored as integers. Steps that follow the weights are those of these weights.
std::string round_rows(OnnxGraph& graph, const std::string& wish, const Shape& shape,
                       const std::vector<float>& weights, const QuantizedWeights& quantized);
// Integers of 32 bits if all values are multiples of the product of both steps, as `crema quantize` writes them;
// otherwise float32. quantization: with x and w.
std::string round_bias(OnnxGraph& graph, const std::string& wish, const std::vector<float>& bias,
                       const LinearQuantization& quantization);

}  // namespace crema
