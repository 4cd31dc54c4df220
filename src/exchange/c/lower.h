// The walk over an ONNX graph that makes a CProgram of it.
#pragma once

#include <string>
#include <vector>

#include "device/context.h"
#include "exchange/c/program.h"
#include "exchange/c/trained_weights.h"
#include "exchange/c/update.h"
#include "exchange/onnx/export.h"

namespace crema {

// `model` as export_onnx() writes it for a batch of fixed size. Operators on constants are computed
// here. Error, with the position of the layer, for an operator that C functions do not compute.
CProgram lower_to_c(Context& context, onnx::ModelProto model, const std::string& prefix);

// Inference and training with the same weights. The models have OnnxOptions::trained, `training` those of
// OnnxOptions::training. Error, too, for an operator without a gradient in C.
CProgram lower_to_c(Context& context, const OnnxModel& inference, const OnnxModel& training,
                    const std::vector<CTrainedParameter>& trained, const CUpdate& update,
                    const std::string& prefix);

}  // namespace crema
