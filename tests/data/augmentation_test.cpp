// Augmentation of forks: random sizes and places of crops, noise, the order of colours.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <set>

#include "data/transforms/augment.h"
#include "fixtures.h"

namespace crema::tests {
namespace augmentation_test {

Augmentation augmentation(const std::string& text, bool training = true) {
  TransformationParameter message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return Augmentation(message, training);
}

// Row y, column x is 10 y + x.
Image ramp(int64_t height, int64_t width) {
  Image image{1, height, width, {}};
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x) image.pixels.push_back(static_cast<uint8_t>(10 * y + x));
  return image;
}

std::vector<uint8_t> changed(const std::string& text, Image image, uint64_t stream = 1) {
  Rng rng({1, stream});
  augmentation(text).apply(image, rng);
  return image.pixels;
}

std::set<std::pair<int64_t, int64_t>> sizes(const std::string& text, int64_t height,
                                            int64_t width) {
  const Augmentation a = augmentation(text);
  std::set<std::pair<int64_t, int64_t>> seen;
  for (uint64_t i = 0; i < 200; ++i) {
    Image image{1, height, width, std::vector<uint8_t>(height * width)};
    Rng rng({1, i});
    a.apply(image, rng);
    seen.insert({image.height, image.width});
  }
  return seen;
}

using Sizes = std::set<std::pair<int64_t, int64_t>>;

TEST(AugmentationOfForks, PutsRedFirst) {
  const Image image{3, 1, 2, {1, 2, 3, 4, 5, 6}};
  const std::vector<uint8_t> red_first = {3, 2, 1, 6, 5, 4};
  EXPECT_EQ(changed("color_order: RGB", image), red_first);
  EXPECT_EQ(changed("bgr2rgb: true", image), red_first);
  EXPECT_EQ(changed("color_order: BGR", image), image.pixels);
  EXPECT_EQ(changed("", image), image.pixels);
}

TEST(AugmentationOfForks, CropsAtCornersAndCentre) {
  NEEDS_IMAGES();
  const auto corners = [](const std::string& text) {
    std::set<int> seen;
    for (uint64_t i = 0; i < 200; ++i) seen.insert(changed(text, ramp(6, 7), i)[0]);
    return seen;
  };
  // 4 spare rows and columns.
  EXPECT_EQ(corners("crop_h: 2 crop_w: 3 fix_crop: true"), (std::set<int>{0, 4, 22, 40, 44}));
  EXPECT_EQ(corners("crop_h: 2 crop_w: 3 fix_crop: true more_fix_crop: true"),
            (std::set<int>{0, 2, 4, 11, 13, 20, 22, 24, 31, 33, 40, 42, 44}));
  Image test = ramp(6, 7);
  Rng rng({1, 1});
  augmentation("crop_size: 3 fix_crop: true", false).apply(test, rng);
  EXPECT_EQ(test.pixels, ramp(6, 7).pixels);
}

TEST(AugmentationOfForks, CropsInSeveralSizes) {
  NEEDS_IMAGES();
  EXPECT_EQ(sizes("crop_size: 10 multi_scale: true", 20, 30), (Sizes{{10, 10}}));
  // 20 of 20 rows and 10 of 20 columns never go together.
  const auto first_row = [](const std::string& text) {
    std::set<std::pair<int, int>> seen;  // last column and row that a crop shows
    for (uint64_t i = 0; i < 300; ++i) {
      Image image = ramp(20, 20);
      for (size_t k = 0; k < 400; ++k) image.pixels[k] = static_cast<uint8_t>(k / 20 * 10);
      Rng rng({1, i});
      augmentation(text).apply(image, rng);
      seen.insert({image.pixels.front(), image.pixels.back()});
    }
    return seen;
  };
  const auto whole = first_row("crop_size: 20 multi_scale: true scale_ratios: 1 max_distort: 0");
  EXPECT_EQ(whole, (std::set<std::pair<int, int>>{{0, 190}}));
  EXPECT_GT(first_row("crop_size: 20 multi_scale: true scale_ratios: 1 scale_ratios: 0.5").size(),
            5u);
}

TEST(AugmentationOfForks, StretchesAtRandom) {
  NEEDS_IMAGES();
  EXPECT_EQ(sizes("vertical_stretch_lower: 0.5 vertical_stretch_upper: 0.5", 20, 40),
            (Sizes{{10, 40}}));
  EXPECT_EQ(sizes("horizontal_stretch_lower: 2 horizontal_stretch_upper: 2", 20, 40),
            (Sizes{{20, 40}}));
  EXPECT_EQ(
      sizes("horizontal_stretch_lower: 2 horizontal_stretch_upper: 2 allow_upscale: true", 20, 40),
      (Sizes{{20, 80}}));
  EXPECT_EQ(sizes("img_rand_resize_lower: 10 img_rand_resize_upper: 10 crop_size: 12", 20, 40),
            (Sizes{{12, 20}}));
  EXPECT_EQ(
      sizes("img_rand_resize_lower: 10 img_rand_resize_upper: 10 rand_resize_ratio_lower: 1.5 "
            "rand_resize_ratio_upper: 1.501",
            20, 40),
      (Sizes{{10, 15}}));
}

TEST(AugmentationOfForks, MakesNoise) {
  NEEDS_IMAGES();
  const Image image{3, 1, 2, {10, 100, 200, 250, 70, 0}};
  EXPECT_EQ(changed("noise_param { inverse: true }", image),
            (std::vector<uint8_t>{245, 155, 55, 5, 185, 255}));
  EXPECT_EQ(changed("noise_param { posterize: true }", image),
            (std::vector<uint8_t>{32, 96, 224, 224, 96, 32}));
  EXPECT_EQ(changed("noise_param { decolorize: true }", image),
            (std::vector<uint8_t>{120, 120, 120, 70, 70, 70}));
  EXPECT_EQ(changed("noise_param { saltpepper: true saltpepper_param { fraction: 1 value: 7 } }",
                    {1, 1, 1, {9}}),
            (std::vector<uint8_t>{7}));
  // The nearest value of a pixel, as for other colours of these layers.
  EXPECT_EQ(changed("noise_param { saltpepper: true "
                    "saltpepper_param { fraction: 1 value: -3 value: 300 value: 6.6 } }",
                    {3, 1, 1, {9, 9, 9}}),
            (std::vector<uint8_t>{0, 255, 7}));
  const Image spot{1, 3, 3, {9, 9, 9, 9, 0, 9, 9, 9, 9}};
  EXPECT_EQ(changed("noise_param { erode: true }", spot),
            (std::vector<uint8_t>{9, 0, 9, 0, 0, 0, 9, 0, 9}));
  EXPECT_EQ(changed("noise_param { hist_eq: true }", {1, 1, 2, {100, 101}}),
            (std::vector<uint8_t>{0, 255}));
  for (const std::string change : {"gauss_blur: true", "clahe: true", "jpeg: 20",
                                   "convert_to_hsv: true", "convert_to_lab: true"}) {
    Image many{3, 16, 16, {}};
    for (int i = 0; i < 16 * 16 * 3; ++i) many.pixels.push_back(static_cast<uint8_t>(i * 37));
    const std::vector<uint8_t> noisy = changed("noise_param { " + change + " }", many);
    EXPECT_EQ(noisy.size(), many.pixels.size()) << change;
    EXPECT_NE(noisy, many.pixels) << change;
  }
}

TEST(AugmentationOfForks, SaysWhatIsWrong) {
  const auto setting = [](const std::string& text) {
    return error_of([&] { augmentation(text); });
  };
  expect_part(setting("multi_scale: true"), "there is no crop_size");
  expect_part(setting("scale_ratios: 1.5"), "above 0 and at most 1");
  expect_part(setting("noise_param { jpeg: 101 }"), "from 1 to 100");
  expect_part(setting("noise_param { saltpepper: true }"), "needs saltpepper_param { value");
  expect_part(setting("noise_param { convert_to_hsv: true convert_to_lab: true }"),
              "asks for both");
  Image small{1, 4, 4, std::vector<uint8_t>(16)};
  Rng rng({1, 1});
  expect_part(error_of([&] { augmentation("crop_size: 5 fix_crop: true").apply(small, rng); }),
              "too small for a crop of 5x5");
}

}  // namespace augmentation_test
}  // namespace crema::tests
