#include "tensor/shape.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace crema {
namespace {

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
}

TEST(ShapeTest, ExtentsCanChange) {
  Shape shape{2, 3};
  shape[1] = 7;
  shape.push_back(1);
  EXPECT_EQ(shape, (Shape{2, 7, 1}));
  EXPECT_NE(shape, (Shape{2, 7}));
}

}  // namespace
}  // namespace crema
