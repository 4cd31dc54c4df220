// transform_param { augment }: the random numbers, and what moves along.
#include "data/transforms/changes.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "data/transforms/transform.h"
#include "fixtures.h"

namespace crema::tests {
namespace changes_test {

TransformationParameter parameter(const std::string& text) {
  TransformationParameter message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

Changes changes(const std::string& text, bool training = true) {
  return {parameter(cat("augment { ", text, " }")).augment(), {training, 24, 32, false, {200}}};
}

Image noisy(int64_t channels, int64_t height, int64_t width) {
  Image image{channels, height, width, {}};
  for (int64_t i = 0; i < channels * height * width; ++i)
    image.pixels.push_back(static_cast<uint8_t>(Random{5, 6}.word(static_cast<uint64_t>(i))));
  return image;
}

Image changed(const std::string& text, Image image, uint64_t stream, bool training = true) {
  Rng rng({1, stream});
  changes(text, training).apply(image, rng);
  return image;
}

const std::string kEach[] = {"resized_crop {}",
                             "flip { horizontal: 1 }",
                             "rotate { probability: 1 least: 5 }",
                             "shear { probability: 1 least: 5 }",
                             "perspective { probability: 1 }",
                             "rand_augment { number: 3 }",
                             "color { probability: 1 }",
                             "gray { probability: 1 }",
                             "blur { probability: 1 least: 1 }",
                             "noise { probability: 1 least: 1 }",
                             "cutout { probability: 1 }"};

TEST(Changes, AreMadeInTrainingOnly) {
  const Image image = noisy(3, 40, 50);
  for (const std::string& each : kEach) {
    EXPECT_NE(changed(each, image, 3).pixels, image.pixels) << each;
    EXPECT_EQ(changed(each, image, 3, false).pixels, image.pixels) << each;
    EXPECT_FALSE(changes(each, false).any()) << each;
  }
  EXPECT_FALSE(changes("").any());
  EXPECT_FALSE(changes("noise {}").moves());
  EXPECT_TRUE(changes("rand_augment {}").moves());
}

TEST(Changes, AreAsFrequentAsTheirProbability) {
  const Image image = noisy(3, 24, 32);
  const std::pair<std::string, double> shares[] = {{"flip {}", 0.5},
                                                   {"flip { horizontal: 0 vertical: 0.2 }", 0.2},
                                                   {"rotate {}", 0.5},
                                                   {"perspective { probability: 0.7 }", 0.7},
                                                   {"color {}", 0.8},
                                                   {"gray { probability: 0.1 }", 0.1},
                                                   {"blur {}", 0.5},
                                                   {"cutout { probability: 0.3 }", 0.3},
                                                   {"noise { probability: 0 }", 0}};
  for (const auto& [text, share] : shares) {
    int count = 0;
    constexpr int kTries = 400;
    for (uint64_t i = 0; i < kTries; ++i) count += changed(text, image, i).pixels != image.pixels;
    EXPECT_NEAR(static_cast<double>(count) / kTries, share, 0.08) << text;
  }
}

TEST(Changes, StayInTheirRanges) {
  double least = 90, most = 0;
  std::set<bool> directions;
  for (uint64_t i = 0; i < 200; ++i) {
    Rng rng({1, i});
    const PlaneMap map =
        changes("rotate { probability: 1 least: 10 most: 30 }").draw(40, 40, rng).warp.source;
    const double angle = std::atan2(map.v[3], map.v[0]) * 180 / 3.14159265358979;
    least = std::min(least, std::abs(angle));
    most = std::max(most, std::abs(angle));
    directions.insert(angle > 0);
  }
  EXPECT_NEAR(least, 10, 0.5);
  EXPECT_NEAR(most, 30, 0.5);
  EXPECT_EQ(directions.size(), 2u);
  for (uint64_t i = 0; i < 100; ++i) {
    Rng rng({1, i});
    const Warp crop = changes(
                          "resized_crop { least_area: 0.2 most_area: 0.5 least_aspect: 0.5 "
                          "most_aspect: 2 }")
                          .draw(100, 80, rng)
                          .warp;
    EXPECT_EQ(crop.height, 24);
    EXPECT_EQ(crop.width, 32);
    const double height = crop.source.v[4] * 24, width = crop.source.v[0] * 32;
    EXPECT_NEAR(height * width / 8000, 0.35, 0.17);
    EXPECT_NEAR(std::log2(width / height), 0, 1.1);
    const PlanePoint corner = crop.source({0, 0});
    EXPECT_GE(std::min(corner.x, corner.y), 0);
    EXPECT_LE(corner.x + width, 80.001);
    EXPECT_LE(corner.y + height, 100.001);
  }
  // No part of a narrow image has such proportions but the largest of a half.
  Rng rng({1, 1});
  const Warp crop = changes("resized_crop { least_area: 1 least_aspect: 1 most_aspect: 1 }")
                        .draw(10, 30, rng)
                        .warp;
  EXPECT_NEAR(crop.source({0, 0}).x, 10, 1e-6);
  EXPECT_NEAR(crop.source({32, 24}).x, 20, 1e-6);
}

// The area around the mark in a label image, relative to the image.
Region marked(const Image& labels, uint8_t mark) {
  Region region{1, 1, 0, 0};
  for (int64_t i = 0; i < labels.height * labels.width; ++i) {
    if (labels.pixels[i * labels.channels] != mark) continue;
    const auto x = static_cast<float>(i % labels.width), y = static_cast<float>(i / labels.width),
               w = static_cast<float>(labels.width), h = static_cast<float>(labels.height);
    region = {std::min(region.xmin, x / w), std::min(region.ymin, y / h),
              std::max(region.xmax, (x + 1) / w), std::max(region.ymax, (y + 1) / h)};
  }
  return region;
}

TEST(Changes, MoveImagesLabelsAndBoxesAlike) {
  Image image{1, 60, 80, std::vector<uint8_t>(4800)};
  const Object object{{0.3f, 0.25f, 0.7f, 0.6f}, 4, 7, true};
  for (int y = 15; y < 36; ++y)
    for (int x = 24; x < 56; ++x) image.pixels[y * 80 + x] = 100;
  const std::string all =
      "resized_crop { least_area: 0.6 } flip { vertical: 0.5 } rotate {} shear "
      "{} perspective {} rand_augment { number: 3 magnitude: 4 }";
  int moved = 0, dropped = 0;
  for (const std::string& text :
       {std::string("flip { horizontal: 1 }"), std::string("rotate { probability: 1 most: 180 }"),
        std::string("shear { probability: 1 most: 30 }"),
        std::string("perspective { probability: 1 most: 0.3 }"),
        std::string("resized_crop { least_area: 0.5 }"), all}) {
    for (uint64_t i = 0; i < 60; ++i) {
      Rng rng({2, i});
      const Warp warp = changes(text).draw(60, 80, rng).warp;
      const Image labels = warp_labels(image, warp, {255}),
                  picture = warp_image(image, warp, {255});
      const std::vector<Object> objects = warp_objects({object}, warp, 60, 80, nullptr);
      // Bilinear samples are on either side of half of the mark where the nearest pixel says so,
      // except for a few on the edge.
      int64_t unlike = 0;
      for (size_t k = 0; k < labels.pixels.size(); ++k)
        unlike += (labels.pixels[k] == 100) != (std::abs(picture.pixels[k] - 100) < 50);
      EXPECT_LT(unlike, 30) << text << i;
      dropped += objects.empty();
      if (objects.empty()) continue;
      const Object& box = objects[0];
      EXPECT_TRUE(box.label == 4 && box.instance == 7 && box.difficult);
      const Region area = marked(labels, 100);
      const float pixel = 1.6f / static_cast<float>(std::min(warp.height, warp.width));
      // The box is clipped after it is drawn around the corners: it may be larger, never smaller.
      EXPECT_LE(box.box.xmin, area.xmin + pixel) << text << i;
      EXPECT_LE(box.box.ymin, area.ymin + pixel) << text << i;
      EXPECT_GE(box.box.xmax, area.xmax - pixel) << text << i;
      EXPECT_GE(box.box.ymax, area.ymax - pixel) << text << i;
      const bool inside = area.xmin > 0 && area.ymin > 0 && area.xmax < 1 && area.ymax < 1;
      if (!inside) continue;
      EXPECT_NEAR(box.box.area(), area.area(), 0.05) << text << i;
      ++moved;
    }
  }
  EXPECT_GT(moved, 200);
  EXPECT_LT(dropped, 30);
}

TEST(Changes, DropObjectsOfWhichLittleRemains) {
  Warp warp{10, 10};
  warp.translate(-5, 0);
  const std::vector<Object> objects = {{{0, 0, 0.54f, 1}, 1, 0, false},
                                       {{0, 0, 0.6f, 1}, 2, 0, false},
                                       {{0.5f, 0.2f, 1, 0.4f}, 3, 0, false}};
  const std::vector<Object> seen = warp_objects(objects, warp, 10, 10, nullptr);
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].label, 2);
  EXPECT_FLOAT_EQ(seen[0].box.xmax, 0.1f);
  EXPECT_EQ(seen[1].label, 3);
  EXPECT_NEAR(seen[1].box.xmin, 0, 1e-6);
  EmitConstraint center;
  EXPECT_EQ(warp_objects(objects, warp, 10, 10, &center).size(), 1u);
}

TEST(Changes, CutSquaresOut) {
  const auto empty = [](const std::string& text, uint64_t stream) {
    const Image image = changed("cutout { probability: 1 " + text + " }",
                                {1, 20, 40, std::vector<uint8_t>(800)}, stream);
    return std::count(image.pixels.begin(), image.pixels.end(), 200);
  };
  std::set<int64_t> areas;
  for (uint64_t i = 0; i < 200; ++i) areas.insert(empty("", i));
  EXPECT_EQ(*areas.rbegin(), 25);
  EXPECT_GE(*areas.begin(), 4);  // at a corner
  EXPECT_GT(empty("holes: 5", 1), 50);
  EXPECT_EQ(empty("size: 0", 1), 1);
}

TEST(RandAugment, DrawsEachOperationAndItsDirection) {
  std::map<RandOperation, std::set<float>> seen;
  Rng rng({1, 1});
  for (int i = 0; i < 1000; ++i) {
    const RandChange change = draw_change(7, rng);
    seen[change.operation].insert(change.strength);
  }
  EXPECT_EQ(seen.size(), static_cast<size_t>(kRandOperations));
  for (const auto& [operation, strengths] : seen) {
    const bool directed =
        operation >= RandOperation::shear_x && operation <= RandOperation::sharpness;
    EXPECT_EQ(strengths, directed ? (std::set<float>{-7, 7}) : (std::set<float>{7}));
  }
}

// At full strength, from torchvision's table of ranges.
TEST(RandAugment, GoesAsFarAsThePaper) {
  const auto map = [](RandOperation operation, float strength) {
    Warp warp{331, 662};
    add_to_warp({operation, strength}, warp);
    return warp.source;
  };
  EXPECT_NEAR(map(RandOperation::shear_x, 10).v[1], 0.3, 1e-6);
  EXPECT_NEAR(map(RandOperation::shear_y, -5).v[3], -0.15, 1e-6);
  EXPECT_EQ(map(RandOperation::translate_x, 10).v[2], -300);
  EXPECT_EQ(map(RandOperation::translate_y, 5).v[5], -75);
  EXPECT_NEAR(map(RandOperation::rotate, 10).v[3], 0.5, 1e-6);
  const auto value = [](RandOperation operation, float strength, uint8_t from) {
    Image image{1, 1, 1, {from}};
    change_pixels({operation, strength}, false, image);
    return static_cast<int>(image.pixels[0]);
  };
  EXPECT_EQ(value(RandOperation::brightness, 10, 100), 190);
  EXPECT_EQ(value(RandOperation::brightness, -10, 100), 10);
  EXPECT_EQ(value(RandOperation::posterize, 10, 0xff), 0xf0);
  EXPECT_EQ(value(RandOperation::posterize, 5, 0xff), 0xfc);
  EXPECT_EQ(value(RandOperation::posterize, 0, 0xff), 0xff);
  EXPECT_EQ(value(RandOperation::solarize, 10, 30), 225);
  EXPECT_EQ(value(RandOperation::solarize, 5, 127), 127);
  EXPECT_EQ(value(RandOperation::solarize, 5, 128), 127);
  EXPECT_EQ(value(RandOperation::identity, 10, 77), 77);
}

TEST(Changes, SayWhatIsWrong) {
  const std::pair<std::string, std::string> rows[] = {
      {"rotate { most: 200 }",
       "rotate { least: 0 (the default) most: 200 }; these are degrees from 0 to 180"},
      {"rotate { least: 20 }", "least: 20 most: 15 (the default)"},
      {"rotate { probability: 1.5 }",
       "rotate { probability }: 1.5; a share of the samples is from 0 to 1"},
      {"shear { most: 61 }", "degrees from 0 to 60"},
      {"perspective { most: 0.4 }", "shares of a side from 0 to 0.3"},
      {"blur { least: -1 }", "pixels from 0 to 50"},
      {"jpeg { least: 0 }", "qualities from 1 to 100"},
      {"noise { most: nan }", "standard deviations from 0 to 255"},
      {"gray { probability: -0.1 }", "gray { probability }: -0.1"},
      {"flip { vertical: 2 }", "flip { vertical }: 2"},
      {"color { hue: 0.6 }", "color { hue }: 0.6; the largest turn, in circles, is from 0 to 0.5"},
      {"color { contrast: -1 }", "color { contrast }: -1"},
      {"cutout { holes: 0 }", "cutout { holes }: 0; the number of squares is from 1 to 1000"},
      {"cutout { size: 1.1 }", "cutout { size }: 1.1"},
      {"rand_augment { magnitude: 11 }", "rand_augment { magnitude }: 11; the strength is from 0"},
      {"rand_augment { number: 0 }", "rand_augment { number }: 0"},
      {"resized_crop { least_area: 0 }", "above 0 and at most 1, the smaller one as least_area"},
      {"resized_crop { least_aspect: 2 }", "least_aspect: 2 most_aspect: 1.33333"}};
  for (const auto& [text, part] : rows)
    for (const bool training : {true, false})
      expect_part(error_of([&, &text = text] { changes(text, training); }), part);
  const auto transform = [](const std::string& text) {
    return error_of([&] { Transform(parameter(text), true, "", silent_log()); });
  };
  expect_part(transform("augment { resized_crop {} }"), "but there is no crop_size");
  expect_part(transform("flow: true augment { blur {} }"), "both augment and flow");
}

// The empty area is the mean; with gray: RGB red is known to be first.
TEST(Changes, KnowMeanAndOrderOfTheTransform) {
  const auto augmented = [](const std::string& text) {
    const Transform transform(parameter(text), true, "", silent_log());
    Record record;
    record.image = {3, 1, 1, {10, 100, 200}};
    show_image(record);
    transform.augment(record, Rng({1, 1}));
    return record.image.pixels;
  };
  using Bytes = std::vector<uint8_t>;
  const std::string hole = "augment { cutout { probability: 1 } }";
  EXPECT_EQ(augmented("mean_value: 30.6 mean_value: 300 mean_value: 5 " + hole),
            (Bytes{31, 255, 5}));
  EXPECT_EQ(augmented("mean_value: 7 " + hole), (Bytes{7, 7, 7}));
  EXPECT_EQ(augmented(hole), (Bytes{0, 0, 0}));
  const std::string gray = "augment { gray { probability: 1 } }";
  EXPECT_EQ(augmented(gray), (Bytes{120, 120, 120}));
  EXPECT_EQ(augmented("gray: RGB " + gray), (Bytes{84, 84, 84}));
  EXPECT_EQ(augmented("color_order: RGB " + gray), (Bytes{120, 120, 120}));
}

}  // namespace changes_test
}  // namespace crema::tests
