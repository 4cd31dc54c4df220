// The program of run_onnx.py, which is embedded.
#pragma once

#include <string_view>

namespace crema {

std::string_view run_onnx_bytes();

}  // namespace crema
