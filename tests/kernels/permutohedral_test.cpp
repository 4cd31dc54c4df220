// The filter for points without position; its results for others are in
// rows/multi_stage_meanfield.rows.
#include "kernels/crf/permutohedral.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tensor/tensor.h"

namespace crema {
namespace permutohedral_test {

TEST(Permutohedral, PointsThatAreNowhereGetNan) {
  constexpr int64_t kPoints = 5;
  const float nowhere = std::numeric_limits<float>::quiet_NaN(),
              far = std::numeric_limits<float>::infinity();
  for (const int dimensions : {2, 5}) {
    // The first two are close together and far away from the corner 0, the others have no position.
    std::vector<float> features(kPoints * dimensions, 70);
    features[0] = 70.01f;
    features[2 * dimensions] = nowhere;
    features[3 * dimensions] = -far;
    features[4 * dimensions] = 1e30f;
    Context context(Device::cpu);
    const auto bytes = [&](size_t size) {
      return Tensor(context, {static_cast<int64_t>(size)}, DType::u8);
    };
    const Tensor tables = bytes(Lattice::bytes(dimensions, kPoints)),
                 workspace = bytes(lattice_workspace(context, dimensions, kPoints));
    const Lattice lattice(tables.raw(), dimensions, kPoints);
    make_lattice(context, lattice, features.data(), workspace.raw());
    const std::vector<float> x(kPoints, 1);
    std::vector<float> y(kPoints), scratch(2 * lattice.entry_count());
    lattice_filter(context, lattice, x.data(), 1, false, y.data(), scratch.data());
    EXPECT_GT(y[0], 0.5);
    EXPECT_NEAR(y[0], y[1], 0.01);
    for (int point = 2; point < kPoints; ++point) EXPECT_TRUE(std::isnan(y[point])) << point;
  }
}

}  // namespace permutohedral_test
}  // namespace crema
