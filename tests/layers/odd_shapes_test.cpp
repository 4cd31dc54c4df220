// Bottoms of every number of axes: a layer takes them or says what it expects, and never reads an
// axis that a bottom does not have (Shape refuses that).
#include <gtest/gtest.h>

#include "base/error.h"
#include "layers/layer_run.h"
#include "proto/layer.pb.h"
#include "support.h"

namespace crema::tests::odd_shapes_test {
namespace {

std::vector<Shape> odd_shapes(const Shape& shape) {
  std::vector<Shape> odd;
  for (int axes = 0; axes <= shape.axes() + 2; ++axes) {
    Shape ones, fives;
    for (int axis = 0; axis < axes; ++axis) {
      ones.push_back(1);
      fives.push_back(axis < shape.axes() ? shape[axis] : 5);
    }
    odd.push_back(ones);
    if (fives != ones) odd.push_back(fives);
  }
  return odd;
}

std::vector<Shape> shapes_of(const Row& row) {
  std::vector<Shape> shapes;
  for (const RowBottom& bottom : row.bottoms) shapes.push_back(bottom.shape);
  return shapes;
}

// What is said if the layer reads an axis that is not there, else nothing.
std::string slip_of(Context& context, const Row& row, const std::vector<Shape>& bottoms) {
  try {
    const std::shared_ptr<Layer> layer = make_layer(layer_of(row), row.training, CREMA_TEST_DATA);
    layer->setup(context, bottoms);
    layer->infer(bottoms);
  } catch (const Error& error) {
    const std::string text = error.what();
    return text.find("please report this") == std::string::npos ? "" : text;
  }
  return "";
}

TEST(OddShapes, NoLayerReadsAnAxisThatABottomDoesNotHave) {
  Context context(Device::cpu);
  size_t tried = 0;
  for (const Row& row : read_rows(CREMA_TEST_DATA "/layers/rows")) {
    if (!row.error.empty()) continue;
    std::vector<Shape> bottoms = shapes_of(row);
    for (size_t at = 0; at < bottoms.size(); ++at) {
      for (const Shape& odd : odd_shapes(row.bottoms[at].shape)) {
        std::vector<Shape> given = bottoms;
        given[at] = odd;
        const std::string slip = slip_of(context, row, given);
        EXPECT_EQ(slip, "") << row.id() << ", bottom " << at << " of " << odd.brief();
        ++tried;
      }
    }
    const std::string slip = slip_of(context, row, std::vector<Shape>(bottoms.size()));
    EXPECT_EQ(slip, "") << row.id() << ", all bottoms scalars";
  }
  EXPECT_GT(tried, 20000u);
}

// A file may claim any extents. Their products must be computed by Shape, which refuses those that
// overflow: UndefinedBehaviorSanitizer finds others.
TEST(OddShapes, ProductsOfHugeExtentsDoNotOverflow) {
  constexpr int64_t kHuge = (int64_t{1} << 32) - 1;
  Context context(Device::cpu);
  size_t refused = 0;
  for (const Row& row : read_rows(CREMA_TEST_DATA "/layers/rows")) {
    if (!row.error.empty()) continue;
    std::vector<Shape> bottoms = shapes_of(row);
    for (Shape& bottom : bottoms) {
      for (int axis = 0; axis < bottom.axes(); ++axis) {
        const int64_t before = bottom[axis];
        bottom[axis] = kHuge;
        try {
          const std::shared_ptr<Layer> layer =
              make_layer(layer_of(row), row.training, CREMA_TEST_DATA);
          layer->setup(context, bottoms);
          layer->infer(bottoms);
        } catch (const Error&) {
          ++refused;
        }
        bottom[axis] = before;
      }
    }
  }
  EXPECT_GT(refused, 1000u);
}

}  // namespace
}  // namespace crema::tests::odd_shapes_test
