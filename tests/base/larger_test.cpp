#include "base/larger.h"

#include <gtest/gtest.h>

#include <limits>

namespace crema {
namespace larger_test {

// A nan stays, whatever follows it.
TEST(Larger, KeepsNan) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(larger_or_nan(1, 2), 2);
  EXPECT_EQ(larger_or_nan(2, 1), 2);
  EXPECT_TRUE(std::isnan(larger_or_nan(nan, 1)));
  EXPECT_TRUE(std::isnan(larger_or_nan(1, nan)));
}

}  // namespace larger_test
}  // namespace crema
