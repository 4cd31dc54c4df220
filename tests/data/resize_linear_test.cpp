// Bilinear resizing without OpenCV: its values, bit for bit.
#include "data/images/resize_linear.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "base/strings.h"

namespace crema::tests {
namespace resize_linear_test {

Image noise(int64_t channels, int64_t height, int64_t width) {
  Image image{channels, height, width, {}};
  const Random random{7, 7};
  for (int64_t i = 0; i < channels * height * width; ++i)
    image.pixels.push_back(static_cast<uint8_t>(random.word(static_cast<uint64_t>(i))));
  return image;
}

TEST(ResizeLinear, OfGradientsAsWorkedOutByHand) {
  // Places -1/4, 1/4, 3/4, 5/4 of the two pixels: 0, a quarter, three quarters, all.
  Image wider{1, 1, 2, {0, 200}};
  resize_linear(1, 4, wider);
  EXPECT_EQ(wider.pixels, (std::vector<uint8_t>{0, 50, 150, 200}));
  Image half{1, 2, 2, {1, 2, 4, 8}};  // 15 / 4, rounded
  resize_linear(1, 1, half);
  EXPECT_EQ(half.pixels, std::vector<uint8_t>{4});
  Image same{3, 1, 1, {1, 2, 3}};
  resize_linear(1, 1, same);
  EXPECT_EQ(same.pixels, (std::vector<uint8_t>{1, 2, 3}));
  resize_linear(2, 1, same);
  EXPECT_EQ(same.pixels, (std::vector<uint8_t>{1, 2, 3, 1, 2, 3}));
}

#ifdef CREMA_OPENCV
TEST(ResizeLinear, HasTheValuesOfOpenCv) {
  for (int i = 0; i < 100; ++i) {  // until resize_image() uses OpenCV
    Image image = noise(1, 2, 2);
    resize_image(3, 3, image);
  }
  struct Size {
    int64_t height, width;
  };
  const Size sizes[] = {{1, 1},   {1, 2},   {2, 1},    {2, 2},   {3, 5},     {4, 6},
                        {7, 7},   {16, 16}, {31, 17},  {64, 33}, {227, 227}, {100, 75},
                        {2, 300}, {300, 2}, {33, 128}, {32, 32}, {375, 500}};
  for (const int64_t channels : {1, 3, 4}) {
    for (const Size& from : sizes) {
      const Image image = noise(channels, from.height, from.width);
      for (const Size& to : sizes) {
        Image ours = image, theirs = image;
        resize_linear(to.height, to.width, ours);
        resize_image(to.height, to.width, theirs);
        EXPECT_EQ(ours.height, to.height);
        EXPECT_EQ(ours.width, to.width);
        ASSERT_TRUE(ours.pixels == theirs.pixels)
            << cat(channels, " channels, from ", from.height, " x ", from.width, " to ", to.height,
                   " x ", to.width);
      }
    }
  }
}
#endif

}  // namespace resize_linear_test
}  // namespace crema::tests
