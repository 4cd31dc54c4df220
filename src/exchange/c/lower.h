// The walk over an ONNX graph that makes a CProgram of it.
#pragma once

#include <string>

#include "device/context.h"
#include "exchange/c/program.h"
#include "proto/onnx.pb.h"

namespace crema {

// `model` as export_onnx() writes it for a batch of fixed size. Operators on constants are computed
// here. Error, with the position of the layer, for an operator that C functions do not compute.
CProgram lower_to_c(Context& context, onnx::ModelProto model, const std::string& prefix);

}  // namespace crema
