// The names that -implementation takes.
#include "kernels/core/implementation.h"

#include <gtest/gtest.h>

#include "support.h"

namespace crema::tests {
namespace implementation_test {

TEST(Implementation, KnownNamesAndNoneAreGood) {
  EXPECT_NO_THROW(check_implementation(""));
  for (const std::string& name : implementation_names())
    EXPECT_NO_THROW(check_implementation(name));
}

TEST(Implementation, AMisspeltNameGetsTheNearest) {
  const std::string message = error_of([] { check_implementation("plian"); });
  expect_part(message, "did you mean \"plain\"?");
  expect_part(message, "im2col, plain");
}

}  // namespace implementation_test
}  // namespace crema::tests
