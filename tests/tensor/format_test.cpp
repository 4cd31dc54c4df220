#include "tensor/format.h"

#include <gtest/gtest.h>

#include <set>

namespace crema {
namespace format_test {

int64_t offset(const Format& format, const Shape& shape, std::vector<int64_t> index) {
  return format.offset(shape, index.data());
}

TEST(FormatTest, PlainIsRowMajor) {
  const Shape shape{2, 3, 4, 5};
  EXPECT_EQ(offset(Format::row_major(), shape, {1, 2, 3, 4}), 119);
  EXPECT_EQ(offset(Format::row_major(), shape, {0, 1, 0, 2}), 22);
  EXPECT_EQ(offset(Format::row_major(), Shape(), {}), 0);
}

TEST(FormatTest, ChannelsLastMovesAxis1ToTheEnd) {
  const Shape shape{2, 3, 4, 5};
  EXPECT_EQ(offset(Format::channels_last(), shape, {0, 1, 0, 0}), 1);
  EXPECT_EQ(offset(Format::channels_last(), shape, {0, 0, 0, 1}), 3);
  EXPECT_EQ(offset(Format::channels_last(), shape, {0, 0, 1, 0}), 15);
  EXPECT_EQ(offset(Format::channels_last(), shape, {1, 0, 0, 0}), 60);
  EXPECT_EQ(offset(Format::channels_last(), Shape{2, 3, 4}, {0, 2, 1}), 5);
  EXPECT_EQ(offset(Format::channels_last(), Shape{2, 3}, {1, 2}), 5);
}

// Weights of 20 outputs and 5 inputs in blocks of 8 outputs by 4 inputs, outputs innermost.
Format blocked() {
  Blocking blocking;
  blocking.padded_dims = {24, 8, 2};
  blocking.strides = {2 * 2 * 32, 2 * 32, 32};
  blocking.inner_axes = {1, 0};
  blocking.inner_sizes = {4, 8};
  return {Order::blocked, std::make_shared<const Blocking>(blocking)};
}

TEST(FormatTest, BlockedCountsItsPadding) {
  EXPECT_EQ(blocked().elements(Shape{20, 5, 2}), 24 * 8 * 2);
}

TEST(FormatTest, BlockedOffsets) {
  const Shape shape{20, 5, 2};
  EXPECT_EQ(offset(blocked(), shape, {1, 0, 0}), 1);
  EXPECT_EQ(offset(blocked(), shape, {0, 1, 0}), 8);
  EXPECT_EQ(offset(blocked(), shape, {0, 0, 1}), 32);
  EXPECT_EQ(offset(blocked(), shape, {0, 4, 0}), 64);
  EXPECT_EQ(offset(blocked(), shape, {19, 4, 1}), 2 * 128 + 64 + 32 + 3);
}

TEST(FormatTest, NoTwoElementsShareAPlace) {
  const Shape shape{20, 5, 2};
  for (const Format& format : {Format::row_major(), Format::channels_last(), blocked()}) {
    std::set<int64_t> positions;
    for (int64_t o = 0; o < 20; ++o) {
      for (int64_t i = 0; i < 5; ++i) {
        for (int64_t k = 0; k < 2; ++k) positions.insert(offset(format, shape, {o, i, k}));
      }
    }
    EXPECT_EQ(positions.size(), 200u);
    EXPECT_GE(*positions.begin(), 0);
    EXPECT_LT(*positions.rbegin(), format.elements(shape));
  }
}

TEST(FormatTest, EqualityLooksIntoTheBlocks) {
  EXPECT_TRUE(blocked() == blocked());
  EXPECT_FALSE(blocked() == Format::row_major());
  Blocking other = *blocked().blocking;
  other.inner_sizes = {8, 4};
  EXPECT_FALSE(blocked() == (Format{Order::blocked, std::make_shared<const Blocking>(other)}));
}

TEST(FormatTest, SameLayoutWhereOneMovedGroupIsTrivial) {
  const Format plain = Format::row_major(), last = Format::channels_last();
  EXPECT_TRUE(same_layout(plain, last, Shape{7, 9}));
  EXPECT_TRUE(same_layout(plain, last, Shape{7, 1, 4, 5}));
  EXPECT_TRUE(same_layout(plain, last, Shape{7, 9, 1, 1}));
  EXPECT_FALSE(same_layout(plain, last, Shape{7, 9, 1, 2}));
  EXPECT_FALSE(same_layout(plain, blocked(), Shape{20, 5, 2}));
}

// Columns of a fully connected layer over images of 3 channels and 4 places.
TEST(FormatTest, PointsComeBeforeChannels) {
  const Format format{Order::channels_last, nullptr, 0, 4};
  const Shape shape{2, 12};
  EXPECT_EQ(format.elements(shape), 24);
  EXPECT_EQ(offset(format, shape, {0, 0}), 0);
  EXPECT_EQ(offset(format, shape, {0, 1}), 3);  // channel 0, place 1
  EXPECT_EQ(offset(format, shape, {0, 4}), 1);  // channel 1, place 0
  EXPECT_EQ(offset(format, shape, {1, 11}), 12 + 11);
  EXPECT_FALSE(same_layout(format, Format::row_major(), shape));
  EXPECT_FALSE(format == Format::channels_last());
}

}  // namespace format_test
}  // namespace crema
