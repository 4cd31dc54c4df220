// Division by a number that is known before a kernel starts: a multiplication and a shift (Granlund
// and Montgomery, 1994), where a GPU would need a dozen instructions for 32 bits and a call for 64.
#pragma once

#include <cstdint>

#include "base/host_device.h"

namespace crema {

// For dividends below kMax; the divisor is at least 1.
struct Divisor {
  static constexpr int64_t kMax = int64_t{1} << 31;

  Divisor() = default;
  explicit Divisor(int64_t by) : value(static_cast<uint32_t>(by < kMax ? by : kMax)) {
    while (uint64_t{1} << shift < value) ++shift;
    factor = static_cast<uint32_t>((((uint64_t{1} << shift) - value) << 32) / value + 1);
  }

  // number / value, rounded down.
  CREMA_HD uint32_t quotient(uint32_t number) const {
#ifdef __CUDA_ARCH__
    return (__umulhi(number, factor) + number) >> shift;
#else
    return number / value;
#endif
  }
  // The quotient; `number` becomes the remainder.
  CREMA_HD uint32_t split(uint32_t& number) const {
    const uint32_t whole = quotient(number);
    number -= whole * value;
    return whole;
  }

  // The same for numbers that are not negative.
  CREMA_HD int quotient(int number) const {
    return static_cast<int>(quotient(static_cast<uint32_t>(number)));
  }
  CREMA_HD int split(int number, int& rest) const {
    const int whole = quotient(number);
    rest = number - whole * static_cast<int>(value);
    return whole;
  }

  uint32_t value = 1, factor = 1, shift = 0;
};

}  // namespace crema
