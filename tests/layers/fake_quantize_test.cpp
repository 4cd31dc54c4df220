// FakeQuantize: what values, ranges and gradients become, on each device.
#include <gtest/gtest.h>

#include "layers/layer_run.h"
#include "support.h"

namespace crema::tests {
namespace fake_quantize_test {

using Values = std::vector<double>;

struct Case {
  const char *name, *fields;
  bool training;
  Values range;  // lowest, highest
  double factor;
  Values x, y, range_after, dx;
  double df;
};

// With 2 bits, from 0 to 3 steps or, with a sign, from -2 to 1. top_diff is 1 everywhere.
const std::vector<Case> kCases = {
    {"no sign",
     "bits: 2",
     false,
     {0, 3},
     1,
     {0, 0.4, 1.5, 2.4, 3, 9},
     {0, 0, 2, 2, 3, 3},
     {0, 3},
     {1, 1, 1, 1, 1, 0},
     0},
    {"a sign",
     "bits: 2",
     false,
     {-4, 1},
     1,
     {-9, -4, 1, 3, 9},
     {-8, -4, 0, 4, 4},
     {-4, 1},
     {1, 1, 1, 1, 0},
     0},
    {"no range yet", "bits: 2", false, {0, 0}, 1, {0.1, -0.2}, {0.1, -0.2}, {0, 0}, {1, 1}, 0},
    {"the first batch", "bits: 2", true, {0, 0}, 1, {0, 1.4, 3}, {0, 1, 3}, {0, 3}, {1, 1, 1}, 0},
    {"a later batch",
     "bits: 2 decay: 0.5",
     true,
     {0, 4},
     1,
     {0, 1.4, 2},
     {0, 1, 2},
     {0, 3},
     {1, 1, 1},
     0},
    {"a factor",
     "bits: 2 range: LEARNED decay: 1",
     true,
     {0, 6},
     0.5,
     {0, 0.25, 1.5, 9},
     {0, 0, 2, 3},
     {0, 6},
     {1, 1, 1, 0},
     (0 - 0.25 + 0.5 + 3) / 0.5},
};

TEST(FakeQuantize, RoundsAndMeasures) {
  for (const Device device : {Device::cpu, Device::gpu}) {
    if (device == Device::gpu && gpu_count() == 0) continue;
    for (const Case& c : kCases) {
      SCOPED_TRACE(cat(c.name, " on the ", name_of(device)));
      Row row;
      row.name = "values";
      row.text = cat("type: \"FakeQuantize\" fake_quantize_param { ", c.fields, " }");
      row.bottoms = {{Shape{static_cast<int64_t>(c.x.size())}, "normal"}};
      row.training = c.training;
      LayerRun run(row, {.device = device});
      Start start = run.make_start();
      start.bottom[0] = c.x;
      start.parameter = {c.range, {c.factor}};
      start.top_diff[0] = Values(c.x.size(), 1);
      const Outcome forward = run.forward(start);
      EXPECT_EQ(forward.top[0], c.y);
      EXPECT_EQ(forward.parameter[0], c.range_after);
      const Outcome backward = run.backward(start);
      EXPECT_EQ(backward.bottom_diff[0], c.dx);
      if (c.factor != 1) {
        EXPECT_NEAR(backward.parameter_diff[1][0], c.df, 1e-12);
      }
    }
  }
}

}  // namespace fake_quantize_test
}  // namespace crema::tests
