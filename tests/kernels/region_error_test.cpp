// Exceptions in parallel regions.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "base/error.h"
#include "kernels/core/threads.h"

namespace crema::tests {
namespace region_error_test {

TEST(RegionError, LeavesTheRegionAndNotTheProgram) {
  constexpr int kTasks = 64;
  for (const int failing : {0, 17, kTasks - 1, kTasks}) {
    RegionError error;
    std::atomic<int> done{0};
#pragma omp parallel for
    for (int task = 0; task < kTasks; ++task) {
      error.run([&] {
        if (task == failing) fail("task ", task);
        ++done;
      });
    }
    EXPECT_EQ(done, failing < kTasks ? kTasks - 1 : kTasks);
    std::string message;
    try {
      error.rethrow();
    } catch (const Error& caught) {
      message = caught.what();
    }
    EXPECT_EQ(message, failing < kTasks ? "task " + std::to_string(failing) : "");
  }
}

}  // namespace region_error_test
}  // namespace crema::tests
