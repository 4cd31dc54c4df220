// What the C functions of a normalization and of its gradient share.
#pragma once

#include "exchange/c/operator_emit.h"

namespace crema {

// The fields of the C structure lrn.
CFields lrn_fields(const OperatorEmit& op);

}  // namespace crema
