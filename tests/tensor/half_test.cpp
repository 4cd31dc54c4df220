// 16-bit real numbers on the CPU: every bit pattern, and how floats are rounded.
#include "tensor/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace crema {
namespace half_test {

// The value of a pattern with so many exponent and fraction bits, by the definition of IEEE 754.
double value_of(uint16_t bits, int exponent_bits, int fraction_bits) {
  const int fraction = bits & ((1 << fraction_bits) - 1);
  const int exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1);
  const double sign = bits >> 15 ? -1 : 1;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  if (exponent == (1 << exponent_bits) - 1)
    return fraction ? std::numeric_limits<double>::quiet_NaN() : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
  return sign * std::ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
}

template <typename T>
void expect_every_pattern(int exponent_bits, int fraction_bits) {
  for (int i = 0; i < 65536; ++i) {
    T number;
    number.bits = static_cast<uint16_t>(i);
    const double want = value_of(number.bits, exponent_bits, fraction_bits);
    const float got = number;
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(got)) << i;
      ASSERT_TRUE(std::isnan(static_cast<float>(T(got)))) << i;
    } else {
      ASSERT_EQ(got, want) << i;
      ASSERT_EQ(T(got).bits, number.bits) << i;
    }
  }
}

TEST(HalfTest, EveryPatternHasItsValue) {
  expect_every_pattern<Half>(5, 10);
  expect_every_pattern<BFloat16>(8, 7);
}

// A float between two neighbours goes to the nearer one, and from the middle to the even one.
template <typename T>
void expect_rounding(uint16_t maximum) {
  for (uint16_t bits = 0; bits < maximum; ++bits) {
    T low, high;
    low.bits = bits;
    high.bits = static_cast<uint16_t>(bits + 1);
    const double a = static_cast<float>(low), b = static_cast<float>(high);
    const float middle = static_cast<float>((a + b) / 2);
    ASSERT_EQ(T(middle).bits, bits % 2 ? high.bits : low.bits) << bits;
    ASSERT_EQ(T(std::nextafter(middle, 0.f)).bits, low.bits) << bits;
    ASSERT_EQ(T(std::nextafter(middle, INFINITY)).bits, high.bits) << bits;
    ASSERT_EQ(T(-middle).bits, T(middle).bits | 0x8000u) << bits;
  }
}

TEST(HalfTest, RoundsToTheNearest) {
  expect_rounding<Half>(0x7bff);
  expect_rounding<BFloat16>(0x7f7f);
}

TEST(HalfTest, LargeNumbersBecomeInfinite) {
  EXPECT_EQ(static_cast<float>(Half(65519.f)), 65504.f);
  EXPECT_EQ(static_cast<float>(Half(65520.f)), INFINITY);
  EXPECT_EQ(static_cast<float>(Half(-1e30f)), -INFINITY);
  EXPECT_EQ(static_cast<float>(BFloat16(std::numeric_limits<float>::max())), INFINITY);
}

}  // namespace half_test
}  // namespace crema
