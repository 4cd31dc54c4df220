// Labels are integers in files and records, and float32 in blobs, which hold every integer only up
// to 2^24.
#pragma once

#include <cstdint>

#include "base/error.h"

namespace crema {

// The label in a blob. Error, which gives only the reason, if its value would change.
inline float exact_label(int64_t label) {
  const auto held = static_cast<float>(label);
  // As doubles: the largest floats exceed int64.
  if (label > INT32_MAX || label < INT32_MIN ||
      static_cast<double>(held) != static_cast<double>(label))
    fail("the label ", label,
         " cannot be kept: blobs are float32, which holds every integer up to ", 1 << 24,
         " but not this one");
  return held;
}

}  // namespace crema
