// Computes the mean image of a database.
#pragma once

#include "base/log.h"
#include "data/databases/source.h"
#include "data/transforms/mean.h"

namespace crema {

// The mean of all records, which must have the same shape. `threads`: so many decode and add; the
// result is the same for any number. Logs every few seconds how far it is.
Mean compute_mean(const Source& source, int threads, Log& log);

}  // namespace crema
