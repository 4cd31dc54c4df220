// Reads quantization_param of a layer with weights.
#pragma once

#include <optional>

#include "kernels/conv/quantized/quantization.h"
#include "layers/layer_passes.h"

namespace crema {

class QuantizationParameter;

// rows: of the weights. None if nothing is rounded. Error for a number of bits out of range, a step that is
// not positive, and scale_params of neither one nor `rows` values.
std::optional<LinearQuantization> layer_quantization(const QuantizationParameter& p, int64_t rows);

// What of it a plan does (Preparation::rounds).
std::optional<LinearQuantization> quantization_in(const Preparation& preparation,
                                                  std::optional<LinearQuantization> quantization);

}  // namespace crema
