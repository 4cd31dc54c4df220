// Where the values of a rank are in a batch that several ranks share. Samples are their first axis.
#pragma once

#include "device/communicator.h"

namespace crema {

// How many values come before those of this rank, which has `count` of them. all 0: it is alone.
inline int64_t values_before(const BatchShare& samples, int64_t count) {
  return samples.all > 0 && samples.count > 0 ? count * samples.first / samples.count : 0;
}

// How many values all ranks have together.
inline int64_t values_of_all(const BatchShare& samples, int64_t count) {
  return samples.all > 0 && samples.count > 0 ? count * samples.all / samples.count : count;
}

}  // namespace crema
