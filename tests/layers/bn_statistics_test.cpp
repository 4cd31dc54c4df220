// Mean and variance of the batch, which SegNet's program reads as tops of BN.
#include <gtest/gtest.h>

#include "layers/layer_run.h"

namespace crema::tests {
namespace bn_statistics_test {

TEST(BnStatistics, AreThoseOfTheBatch) {
  Row row;
  row.text =
      "type: \"BN\" top: \"y\" top: \"mean\" top: \"variance\" bn_param { bn_mode: LEARN "
      "variance_eps: 0.5 }";
  row.bottoms = {{Shape{2, 2, 1, 2}, "values(1,2,10,10,3,6,10,14)"}};
  LayerRun run(row, {.backward = false});
  Start start;
  start.bottom = {make_values(row, 0)};
  start.parameter = {{1, 1}, {0, 0}};
  const Outcome outcome = run.forward(start);
  ASSERT_EQ(outcome.top.size(), 3u);
  EXPECT_EQ(run.top_shapes()[1], Shape({1, 2, 1, 1}));
  EXPECT_NEAR(outcome.top[0][0], -1, 1e-6);  // (1 - 3) / sqrt(3.5 + 0.5)
  for (size_t c = 0; c < 2; ++c) {
    EXPECT_NEAR(outcome.top[1][c], c == 0 ? 3 : 11, 1e-6);
    EXPECT_NEAR(outcome.top[2][c], c == 0 ? 3.5 : 3, 1e-5);
  }
}

}  // namespace bn_statistics_test
}  // namespace crema::tests
