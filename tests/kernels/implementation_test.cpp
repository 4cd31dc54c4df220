// The names that -implementation takes.
#include "kernels/core/implementation.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "device/cudnn.h"
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

// A name that only other builds have: what this one lacks, and how to get it.
TEST(Implementation, ANameOfAnotherBuildSaysWhatItNeeds) {
  struct Row {
    const char *name, *part, *option;
  };
  for (const Row& row :
       {Row{"onednn", "oneDNN", "-DCREMA_ONEDNN=ON"}, Row{"cudnn", "cuDNN", "-DCREMA_CUDNN=ON"},
        Row{"per_group", "cuDNN", "-DCREMA_CUDNN=ON"},
        Row{"cublas", "GPU support", "-DCREMA_CUDA=ON"}}) {
    SCOPED_TRACE(row.name);
    const std::vector<std::string>& names = implementation_names();
    if (std::count(names.begin(), names.end(), row.name) > 0) continue;
    const bool gpu = std::count(names.begin(), names.end(), "autotuned") > 0;
    const bool of_gpu = row.name != std::string("onednn") && !gpu;
    const std::string message = error_of([&] { check_implementation(row.name); });
    expect_part(message, cat("-implementation ", row.name, ": this build has no ",
                             of_gpu ? "GPU support" : row.part, "; build with ",
                             of_gpu ? "-DCREMA_CUDA=ON" : row.option, " for it, or take one of ",
                             names[0], ", "));
  }
  // The seam says the same.
  const std::vector<std::string>& names = implementation_names();
  EXPECT_EQ(has_cudnn(), std::count(names.begin(), names.end(), "cudnn") > 0);
  if (!has_cudnn()) {
    EXPECT_EQ(cudnn_version(), 0);
  }
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
