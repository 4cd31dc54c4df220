// What the C functions of a normalization and of its gradient share.
#pragma once

#include "exchange/c/operator_emit.h"

namespace crema {

// The fields of the C structure lrn.
CFields lrn_fields(const OperatorEmit& op);
// Those of lrn_within, and the size of a row with its borders.
CFields lrn_within_fields(const OperatorEmit& op);
int64_t lrn_row(const OperatorEmit& op);
// Those of mvn.
CFields mvn_fields(const OperatorEmit& op);

}  // namespace crema
