// Arithmetic on the two inputs of an operator, which may be constants and of different shapes.
#pragma once

#include <string>

#include "exchange/onnx/operator_import.h"

namespace crema {

// type: Add, Sub, Mul, Div or Max.
std::string combined_inputs(OperatorImport& op, const std::string& type);

}  // namespace crema
