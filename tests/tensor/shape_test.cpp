#include "tensor/shape.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tensor/shape_limits.h"

namespace crema {
namespace shape_test {

TEST(ShapeTest, Counts) {
  const Shape shape{2, 3, 4, 5};
  EXPECT_EQ(shape.axes(), 4);
  EXPECT_EQ(shape.count(), 120);
  EXPECT_EQ(shape.count(1), 60);
  EXPECT_EQ(shape.count(1, 3), 12);
  EXPECT_EQ(shape.count(4), 1);
  EXPECT_EQ((Shape{3, 0, 2}).count(), 0);
}

TEST(ShapeTest, AScalarHasOneElement) {
  EXPECT_EQ(Shape().axes(), 0);
  EXPECT_EQ(Shape().count(), 1);
  EXPECT_EQ(Shape().brief(), "scalar");
}

std::string what_of(const Shape& shape) {
  try {
    return std::to_string(shape.count());
  } catch (const Error& error) {
    return error.what();
  }
}

// Products that overflow 64 bits would come out small, or negative.
TEST(ShapeTest, CountsOfClaimsDoNotOverflow) {
  struct Row {
    Shape shape;
    const char* count;
  };
  constexpr int64_t k2p44 = int64_t{1} << 44, k2p62 = int64_t{1} << 62;
  for (const Row& row :
       {Row{{k2p44, 16}, "281474976710656"},
        Row{{k2p44, 17}, "the shape 17592186044416x17 has more than 2^48 values"},
        Row{{k2p44, 1 << 20}, "the shape 17592186044416x1048576 has more than 2^48 values"},
        Row{{k2p62, 4, 3}, "the shape 4611686018427387904x4x3 has more than 2^48 values"},
        Row{{k2p62, 4, 0}, "0"}, Row{{0, k2p62, k2p62}, "0"},
        Row{{2, -3}, "the shape 2x-3 has a negative extent"},
        Row{{-2, -3}, "the shape -2x-3 has a negative extent"}})
    EXPECT_EQ(what_of(row.shape), row.count);
  EXPECT_EQ((Shape{k2p62, k2p62, 3, 5}).count(2), 15);
  EXPECT_THROW((Shape{k2p62, k2p62, 3, 5}).count(0, 2), Error);
}

TEST(ShapeTest, ClaimsAreHeldAgainstWhatThereIs) {
  EXPECT_TRUE(at_most(Shape{3, 4}, 12));
  EXPECT_FALSE(at_most(Shape{3, 4}, 11));
  EXPECT_TRUE(at_most(Shape{3, 0}, 0));
  EXPECT_FALSE(at_most(Shape{-1, -1}, 12));
  EXPECT_FALSE(at_most(Shape{int64_t{1} << 62, 4}, INT64_MAX));
  EXPECT_TRUE(at_most(Shape(), 1));
}

TEST(ShapeTest, NegativeAxesCountFromTheEnd) {
  const Shape shape{2, 3, 4};
  EXPECT_EQ(shape.canonical_axis(0), 0);
  EXPECT_EQ(shape.canonical_axis(-1), 2);
  EXPECT_EQ(shape.canonical_axis(-3), 0);
  EXPECT_THROW(shape.canonical_axis(3), Error);
  EXPECT_THROW(shape.canonical_axis(-4), Error);
}

TEST(ShapeTest, Texts) {
  EXPECT_EQ((Shape{64, 20, 24, 24}).str(), "64 20 24 24 (737280)");
  EXPECT_EQ(Shape().str(), "(1)");
  EXPECT_EQ((Shape{64, 20}).brief(), "64x20");
  const std::string many = Shape(std::vector<int64_t>(100000, 1)).brief();
  EXPECT_LT(many.size(), 100U);
  EXPECT_EQ(many.substr(many.size() - 20), "x1x... (100000 axes)");
}

TEST(ShapeTest, ExtentsCanChange) {
  Shape shape{2, 3};
  shape[1] = 7;
  shape.push_back(1);
  EXPECT_EQ(shape, (Shape{2, 7, 1}));
  EXPECT_NE(shape, (Shape{2, 7}));
}

}  // namespace shape_test
}  // namespace crema
