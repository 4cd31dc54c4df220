// Computes the mean image of a database.
#pragma once

#include "base/log.h"
#include "data/databases/source.h"
#include "data/transforms/mean.h"

namespace crema {

// The mean of all records, which must have the same shape. Logs progress every 10000 records.
Mean compute_mean(const Source& source, Log& log);

}  // namespace crema
