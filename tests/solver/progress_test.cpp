// When a run counts as waiting for its data.
#include "solver/events/progress.h"

#include <gtest/gtest.h>

#include <vector>

namespace crema::tests {
namespace starvation_test {

struct Row {
  const char* name;
  int64_t iterations;          // of a display
  std::vector<double> shares;  // of the displays
  int told_at;                 // which display; -1: none
};

const Row kRows[] = {
    {"NotInTheFirstIteration", 100, {0.9, 0.1, 0.1, 0.1}, -1},
    {"ThreeInARow", 100, {0, 0.5, 0.5, 0.5, 0.5}, 3},
    {"OnceOnly", 100, {0.9, 0.9, 0.9, 0.9, 0, 0.9, 0.9, 0.9, 0.9}, 3},
    {"WithAPause", 100, {0, 0.5, 0.5, 0.1, 0.5, 0.5, 0.1}, -1},
    {"NotMuch", 100, {0, 0.19, 0.19, 0.19, 0.19}, -1},
    {"AnEmptyDisplay", 100, {0, 0.5, 0, 0.5, 0.5, 0.5}, 5},
    {"FewIterations", 5, {0.5, 0.5, 0.5, 0.5, 0.5, 0.5}, 4},
};

TEST(Starvation, IsMuchWaitingForAWhile) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.name);
    Starvation starvation;
    int told_at = -1;
    for (size_t i = 0; i < row.shares.size(); ++i) {
      if (!starvation.begins(row.shares[i], row.iterations)) continue;
      EXPECT_EQ(told_at, -1);
      told_at = static_cast<int>(i);
    }
    EXPECT_EQ(told_at, row.told_at);
  }
}

}  // namespace starvation_test
}  // namespace crema::tests
