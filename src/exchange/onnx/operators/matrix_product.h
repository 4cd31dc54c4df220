// The product of two blobs of matrices.
#pragma once

#include <string>

#include "exchange/onnx/operator_import.h"

namespace crema {

// a (..., M, K) times b (..., K, N).
std::string product_of_matrices(OperatorImport& op, const std::string& a, const std::string& b);

}  // namespace crema
