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

bool doubles(Context&, int x, int& y) {
  if (x % 2 == 1) return false;
  y = 2 * x;
  return true;
}

bool negates(Context&, int x, int& y) {
  y = -x;
  return true;
}

bool declines(Context&, int, int&) { return false; }

constexpr KernelFunction<int, int&> kList[] = {
    {"doubling", doubles}, {"plain", negates}, {"last", declines}};

int run(const std::string& implementation, int x) {
  Context context(Device::cpu);
  context.implementation = implementation;
  int y = 0;
  run_first(context, "the function", kList, x, y);
  return y;
}

TEST(Implementation, TheFirstFunctionThatSupportsTheCaseRuns) {
  EXPECT_EQ(run("", 4), 8);
  EXPECT_EQ(run("", 3), -3);
}

TEST(Implementation, ANamedFunctionIsTriedFirstAndThoseBeforeItLast) {
  EXPECT_EQ(run("plain", 4), -4);
  EXPECT_EQ(run("im2col", 4), 8);
  EXPECT_EQ(run("last", 4), 8);
}

TEST(Implementation, ACaseThatNoFunctionTakesIsAnError) {
  constexpr KernelFunction<int, int&> none[] = {{"last", declines}};
  Context context(Device::cpu);
  int y = 0;
  expect_part(error_of([&] { run_first(context, "the function", none, 1, y); }),
              "no implementation of the function takes this case");
}

}  // namespace implementation_test
}  // namespace crema::tests
