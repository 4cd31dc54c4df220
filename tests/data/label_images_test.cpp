// DenseImageData, ImageSegData, ImageLabelmapData and SegData.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <set>

#include "data/images/image.h"
#include "fixtures.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"

namespace crema::tests {
namespace label_images_test {

// height x width; row y, column x is base + 10 y + x.
std::string ramp(int height, int width, int base) {
  Image image{1, height, width, {}};
  for (int i = 0; i < height * width; ++i)
    image.pixels.push_back(static_cast<uint8_t>(base + 10 * (i / width) + i % width));
  return encode_image(image, "png");
}

struct Files {
  Files() {
    folder.write("a.png", ramp(4, 5, 0));
    folder.write("a_label.png", ramp(4, 5, 100));
    folder.write("b.png", ramp(3, 6, 50));
    folder.write("b_label.png", ramp(3, 6, 150));
    folder.write("list.txt", "a.png a_label.png\nb.png b_label.png\n");
  }

  std::unique_ptr<Layer> layer(const std::string& type, const std::string& fields,
                               const std::string& transform, Context& context,
                               bool training = false, int tops = 2) const {
    LayerParameter message;
    const std::string names[] = {"data", "label", "dim"};
    for (int i = 0; i < tops; ++i) message.add_top(names[i]);
    message.set_type(type);
    const std::string block = type == "SegData" ? "seg_data_param { "
                              : type == "DenseImageData"
                                  ? "dense_image_data_param { is_color: false "
                                  : "image_data_param { is_color: false ";
    EXPECT_TRUE(google::protobuf::TextFormat::MergeFromString(
        cat("transform_param { ", transform, " } ", block, " source: \"list.txt\" ", fields, " }"),
        &message));
    std::unique_ptr<Layer> layer = make_layer(message, training, folder.path());
    layer->setup(context, {});
    return layer;
  }

  Folder folder;
};

using Blobs = std::vector<std::vector<float>>;

Blobs batch_of(Layer& layer, Context& context, uint64_t number, std::vector<Shape>* shapes = {}) {
  Forward pass;
  pass.pass = number;
  layer.source()->reshapes(number);
  for (const Shape& shape : layer.infer({}).tops) pass.top.emplace_back(context, shape);
  layer.forward(context, pass);
  Blobs blobs;
  for (const Tensor& top : pass.top) blobs.push_back(to_floats(context, top));
  if (shapes) *shapes = layer.infer({}).tops;
  return blobs;
}

// Rows from `top` and columns from `left` of an image of ramp(); three channels, or one.
std::vector<float> part_of_ramp(int base, int top, int left, int rows, int columns, int channels) {
  std::vector<float> values;
  for (int i = 0; i < channels * rows * columns; ++i) {
    const int y = top + i / columns % rows, x = left + i % columns;
    values.push_back(static_cast<float>(base + 10 * y + x));
  }
  return values;
}

TEST(LabelImages, AreCroppedAndMirroredAsTheImagesAre) {
  NEEDS_IMAGES();
  const Files files;
  Context context(Device::cpu);
  for (const std::string type : {"DenseImageData", "ImageSegData"}) {
    const auto layer = files.layer(type, "batch_size: 2 shuffle: true",
                                   "crop_size: 3 mirror: true scale: 2", context, true);
    EXPECT_EQ(layer->infer({}).tops, (std::vector<Shape>{{2, 1, 3, 3}, {2, 1, 3, 3}}));
    std::set<float> seen;
    for (uint64_t pass = 0; pass < 20; ++pass) {
      const Blobs blobs = batch_of(*layer, context, pass);
      for (int i = 0; i < 18; ++i) EXPECT_EQ(blobs[1][i], blobs[0][i] / 2 + 100);
      seen.insert(blobs[1][0]);
    }
    EXPECT_GT(seen.size(), 10u);
  }
}

TEST(LabelImages, FollowTheSizeOfEachImage) {
  NEEDS_IMAGES();
  const Files files;
  Context context(Device::cpu);
  const auto layer = files.layer("DenseImageData", "label_divider: 10", "", context);
  EXPECT_EQ(layer->source()->records(), 2);
  std::vector<Shape> shapes;
  batch_of(*layer, context, 0, &shapes);
  EXPECT_EQ(shapes, (std::vector<Shape>{{1, 1, 4, 5}, {1, 1, 4, 5}}));
  const Blobs second = batch_of(*layer, context, 1, &shapes);
  EXPECT_EQ(shapes, (std::vector<Shape>{{1, 1, 3, 6}, {1, 1, 3, 6}}));
  EXPECT_EQ(second[1], (std::vector<float>{15, 15, 15, 15, 15, 15, 16, 16, 16, 16, 16, 16, 17, 17,
                                           17, 17, 17, 17}));
}

TEST(LabelImages, LabelsAreResizedToTheNearestPixel) {
  NEEDS_IMAGES();
  const Files files;
  Context context(Device::cpu);
  const auto layer = files.layer("DenseImageData",
                                 "new_height: 8 new_width: 10 is_label_color: true", "", context);
  std::vector<Shape> shapes;
  const Blobs blobs = batch_of(*layer, context, 0, &shapes);
  EXPECT_EQ(shapes, (std::vector<Shape>{{1, 1, 8, 10}, {1, 3, 8, 10}}));
  for (int c = 0; c < 3; ++c) {
    for (int y = 0; y < 8; ++y) {
      for (int x = 0; x < 10; ++x)
        EXPECT_EQ(blobs[1][(c * 8 + y) * 10 + x], 100 + 10 * (y / 2) + x / 2);
    }
  }
}

// ENet's label_divide_factor: a label map for scores of a fraction of the image's size.
TEST(LabelImages, LabelMapsCanBeSmallerThanTheImages) {
  NEEDS_IMAGES();
  const Files files;
  Context context(Device::cpu);
  const auto layer = [&](const std::string& fields, bool training = false) {
    return files.layer("DenseImageData", fields, "", context, training);
  };
  std::vector<Shape> shapes;
  const auto half = layer("new_height: 8 new_width: 10 label_divide_factor: 2");
  EXPECT_EQ(batch_of(*half, context, 0, &shapes)[1], part_of_ramp(100, 0, 0, 4, 5, 1));
  EXPECT_EQ(shapes, (std::vector<Shape>{{1, 1, 8, 10}, {1, 1, 4, 5}}));
  const auto third = layer("label_divide_factor: 3 label_divider: 2");
  EXPECT_EQ(batch_of(*third, context, 1)[1], (std::vector<float>{75, 76}));
  const auto crops =
      layer("mirror: true crop_height: 2 crop_width: 4 label_divide_factor: 2", true);
  for (uint64_t pass = 0; pass < 20; ++pass) {
    const Blobs found = batch_of(*crops, context, pass, &shapes);
    EXPECT_EQ(shapes[1], (Shape{1, 1, 1, 2}));
    const int first = found[0][0] > found[0][1] ? 1 : 0;  // mirrored or not
    for (int x = 0; x < 2; ++x) EXPECT_EQ(found[1][x], found[0][2 * x + first] + 100);
  }
  expect_part(error_of([&] { layer("label_divide_factor: 9"); }), "4x5 leaves no label map after");
}

TEST(ImageSegData, FillsUpToTheCropAndTellsTheSize) {
  NEEDS_IMAGES();
  const Files files;
  Context context(Device::cpu);
  const auto layer = files.layer("ImageSegData", "batch_size: 2",
                                 "crop_h: 4 crop_w: 6 mean_value: 7", context, false, 3);
  const Blobs blobs = batch_of(*layer, context, 0);
  EXPECT_EQ(layer->infer({}).tops[2], (Shape{2, 1, 1, 2}));
  EXPECT_EQ(blobs[2], (std::vector<float>{4, 5, 3, 6}));
  for (int y = 0; y < 4; ++y) {
    for (int x = 0; x < 6; ++x) {
      const int at = y * 6 + x;
      EXPECT_EQ(blobs[0][at], x < 5 ? 10 * y + x - 7 : 0);
      EXPECT_EQ(blobs[1][at], x < 5 ? 100 + 10 * y + x : 255);
      EXPECT_EQ(blobs[0][24 + at], y < 3 ? 50 + 10 * y + x - 7 : 0);
      EXPECT_EQ(blobs[1][24 + at], y < 3 ? 150 + 10 * y + x : 255);
    }
  }
}

TEST(ImageSegData, TakesNumbersAndNothingAsLabels) {
  NEEDS_IMAGES();
  const Files files;
  Context context(Device::cpu);
  files.folder.write("list.txt", "a.png 3\nb.png 9\n");
  const auto image = files.layer("ImageSegData", "label_type: IMAGE", "crop_size: 3", context);
  EXPECT_EQ(batch_of(*image, context, 1)[1], std::vector<float>(9, 9));
  const auto none =
      files.layer("ImageSegData", "label_type: NONE ignore_label: 21", "crop_size: 3", context);
  EXPECT_EQ(batch_of(*none, context, 1)[1], std::vector<float>(9, 21));
}

TEST(ImageSegData, ResizesByADrawnFactor) {
  NEEDS_IMAGES();
  const Files files;
  Context context(Device::cpu);
  files.folder.write("list.txt", "a.png a_label.png\n");
  const auto layer =
      files.layer("ImageSegData", "", "scale_factors: 1 scale_factors: 2", context, true);
  std::set<int64_t> heights;
  std::vector<Shape> shapes;
  for (uint64_t pass = 0; pass < 20; ++pass) {
    const Blobs blobs = batch_of(*layer, context, pass, &shapes);
    heights.insert(shapes[0][2]);
    EXPECT_EQ(shapes[0], shapes[1]);
    EXPECT_EQ(blobs[1].back(), 134);
  }
  EXPECT_EQ(heights, (std::set<int64_t>{4, 8}));
}

TEST(SegData, FollowsEachImageInMultiplesOfTheStride) {
  NEEDS_IMAGES();
  const Files files;
  Context context(Device::cpu);
  const auto layer = files.layer("SegData", "", "stride: 3", context);
  EXPECT_EQ(layer->source()->records(), 2);
  std::vector<Shape> shapes;
  // The middle of 4 x 5 and of 3 x 6 pixels.
  const Blobs a = batch_of(*layer, context, 0, &shapes);
  EXPECT_EQ(shapes, (std::vector<Shape>{{1, 3, 3, 3}, {1, 1, 3, 3}}));
  EXPECT_EQ(a[0], part_of_ramp(0, 0, 1, 3, 3, 3));
  EXPECT_EQ(a[1], part_of_ramp(100, 0, 1, 3, 3, 1));
  const Blobs b = batch_of(*layer, context, 1, &shapes);
  EXPECT_EQ(shapes, (std::vector<Shape>{{1, 3, 3, 6}, {1, 1, 3, 6}}));
  EXPECT_EQ(b[1], part_of_ramp(150, 0, 0, 3, 6, 1));
  // Without a stride all of it, and at most so much.
  const auto whole = files.layer("SegData", "", "", context);
  EXPECT_EQ(batch_of(*whole, context, 0)[1], part_of_ramp(100, 0, 0, 4, 5, 1));
  const auto square = files.layer("SegData", "", "stride: 2 upper_size: 2", context);
  EXPECT_EQ(batch_of(*square, context, 0)[1], part_of_ramp(100, 1, 1, 2, 2, 1));
  const auto flat = files.layer("SegData", "", "upper_height: 1 upper_width: 9", context);
  EXPECT_EQ(batch_of(*flat, context, 0)[0], part_of_ramp(0, 1, 0, 1, 5, 3));
}

TEST(SegData, DrawsACropThatTheLabelsShare) {
  NEEDS_IMAGES();
  const Files files;
  Context context(Device::cpu);
  files.folder.write("list.txt", "a.png a_label.png\n");
  const auto layer =
      files.layer("SegData", "shuffle: true", "upper_size: 2 mirror: true mean_value: 4 scale: 2",
                  context, true);
  std::set<float> corners;
  int mirrored = 0;
  for (uint64_t pass = 0; pass < 60; ++pass) {
    const Blobs blobs = batch_of(*layer, context, pass);
    ASSERT_EQ(blobs[1].size(), 4u);
    for (int i = 0; i < 12; ++i) EXPECT_EQ(blobs[0][i], 2 * (blobs[1][i % 4] - 100 - 4));
    corners.insert(std::min(blobs[1][0], blobs[1][1]));
    mirrored += blobs[1][0] > blobs[1][1];
  }
  EXPECT_EQ(corners.size(), 12u);  // 3 rows x 4 columns where a crop may begin
  EXPECT_GT(mirrored, 15);
  EXPECT_LT(mirrored, 45);
  const auto again =
      files.layer("SegData", "shuffle: true", "upper_size: 2 mirror: true mean_value: 4 scale: 2",
                  context, true);
  EXPECT_EQ(batch_of(*again, context, 7), batch_of(*layer, context, 7));
}

TEST(SegData, ResizesByAFactorBetweenTwo) {
  NEEDS_IMAGES();
  const Files files;
  Context context(Device::cpu);
  files.folder.write("list.txt", "a.png a_label.png\n");
  const auto twice = files.layer("SegData", "", "scale_ratios: 2 scale_ratios: 2", context);
  std::vector<Shape> shapes;
  const Blobs blobs = batch_of(*twice, context, 0, &shapes);
  EXPECT_EQ(shapes, (std::vector<Shape>{{1, 3, 8, 10}, {1, 1, 8, 10}}));
  for (int i = 0; i < 80; ++i) EXPECT_EQ(blobs[1][i], 100 + 10 * (i / 20) + i % 10 / 2) << i;
  // Between two columns of 0 and 1, a quarter and three quarters of the way: 0.25 and 0.75.
  EXPECT_EQ((std::vector<float>{blobs[0][0], blobs[0][1], blobs[0][2], blobs[0][79]}),
            (std::vector<float>{0, 0, 1, 34}));
  const auto layer =
      files.layer("SegData", "", "scale_ratios: 0.5 scale_ratios: 2.5 stride: 2", context, true);
  std::set<int64_t> heights;
  for (uint64_t pass = 0; pass < 60; ++pass) {
    batch_of(*layer, context, pass, &shapes);
    EXPECT_EQ(shapes[0][3] % 2, 0);
    heights.insert(shapes[0][2]);
  }
  // From floor(2 / 2) * 2 to 10 rows, the last by factors from 2.375 on.
  EXPECT_EQ(heights, (std::set<int64_t>{2, 4, 6, 8, 10}));
}

TEST(SegData, FillsUpToTheCrop) {
  NEEDS_IMAGES();
  const Files files;
  Context context(Device::cpu);
  const auto layer =
      files.layer("SegData", "batch_size: 2", "crop_size: 5 stride: 4 mean_value: 7", context);
  std::vector<Shape> shapes;
  const Blobs blobs = batch_of(*layer, context, 0, &shapes);
  EXPECT_EQ(shapes, (std::vector<Shape>{{2, 3, 5, 5}, {2, 1, 5, 5}}));
  for (int y = 0; y < 5; ++y) {
    for (int x = 0; x < 5; ++x) {
      const int at = y * 5 + x;
      EXPECT_EQ(blobs[0][at], y < 4 ? 10 * y + x - 7 : 0);
      EXPECT_EQ(blobs[1][at], y < 4 ? 100 + 10 * y + x : 255);
      EXPECT_EQ(blobs[0][75 + at], y < 3 ? 50 + 10 * y + x - 7 : 0);
      EXPECT_EQ(blobs[1][25 + at], y < 3 ? 150 + 10 * y + x : 255);
    }
  }
}

TEST(SegData, DrawsAgainWhereOneClassPrevails) {
  NEEDS_IMAGES();
  const Files files;
  Context context(Device::cpu);
  // The last two of 20 columns are class 2. Of the 17 places where four columns may begin, the
  // last two show it in a quarter of the crop and more.
  Image labels{1, 4, 20, std::vector<uint8_t>(80, 1)};
  for (int y = 0; y < 4; ++y) labels.pixels[20 * y + 18] = labels.pixels[20 * y + 19] = 2;
  files.folder.write("c.png", encode_image(labels, "png"));
  files.folder.write("list.txt", "c.png c.png\n");
  const auto mixed = [&](const std::string& fields, const std::string& transform) {
    const auto layer = files.layer("SegData", fields, transform, context, true);
    int count = 0;
    for (uint64_t pass = 0; pass < 60; ++pass) {
      const Blobs blobs = batch_of(*layer, context, pass);
      EXPECT_EQ(std::vector<float>(blobs[0].begin(), blobs[0].begin() + 16), blobs[1]);
      count += std::set<float>(blobs[1].begin(), blobs[1].end()).size() == 2;
    }
    return count;
  };
  // 2 of 17, against 1 - (15/17)^11, three quarters.
  EXPECT_LT(mixed("", "upper_size: 4"), 16);
  EXPECT_GT(mixed("balance: true", "upper_size: 4"), 33);
  EXPECT_GT(mixed("balance: true", "crop_size: 4"), 33);
}

TEST(ImageLabelmapData, TellsEdgesFromTheRest) {
  NEEDS_IMAGES();
  const Files files;
  Context context(Device::cpu);
  files.folder.write("list.txt", "a.png a_label.png\n");
  const auto layer = files.layer("ImageLabelmapData", "", "", context);
  const Blobs blobs = batch_of(*layer, context, 0);
  for (int y = 0; y < 4; ++y) {
    for (int x = 0; x < 5; ++x) EXPECT_EQ(blobs[1][y * 5 + x], 100 + 10 * y + x >= 128);
  }
}

TEST(LabelImages, SayWhatIsWrong) {
  NEEDS_IMAGES();
  const Files files;
  Context context(Device::cpu);
  const auto problem = [&](const std::string& list, const std::string& fields,
                           const std::string& transform, const std::string& type) {
    files.folder.write("list.txt", list);
    return error_of([&] { batch_of(*files.layer(type, fields, transform, context), context, 0); });
  };
  const std::string good = "a.png a_label.png\n", dense = "DenseImageData", seg = "ImageSegData";
  expect_part(problem("a.png b_label.png\n", "", "", dense),
              "list.txt:1: the image is 4x5, but its label image b_label.png is 3x6");
  expect_part(problem(good + "b.png b_label.png\n", "batch_size: 2", "", dense),
              "list.txt:2: its shape 1x3x6 is not 1x4x5, that of");
  expect_part(problem(good + "b.png\n", "", "", dense), "list.txt:2: a line is `path path`");
  expect_part(problem("a.png none.png\n", "", "", dense), "none.png: cannot open");
  expect_part(problem(good, "label_divider: 0", "", dense), "label_divider is 0");
  expect_part(problem(good, "new_width: 3", "", dense), "only one of new_height and new_width");
  expect_part(problem(good, "batch_size: 0", "", seg), "batch_size");
  expect_part(problem(good, "", "mean_file: \"m\"", seg), "takes no mean_file");
  expect_part(problem(good, "", "scale_factors: 0", seg), "scale_factors has 0");
  expect_part(problem("a.png 300\n", "label_type: IMAGE", "", seg),
              "label 300 is not an integer from 0");
}

TEST(SegData, SaysWhatIsWrong) {
  NEEDS_IMAGES();
  const Files files;
  Context context(Device::cpu);
  const auto problem = [&](const std::string& list, const std::string& fields,
                           const std::string& transform) {
    files.folder.write("list.txt", list);
    return error_of(
        [&] { batch_of(*files.layer("SegData", fields, transform, context), context, 0); });
  };
  const std::string good = "a.png a_label.png\n", both = good + "b.png b_label.png\n";
  expect_part(problem(good, "source: \"\"", ""), "seg_data_param needs a `source`");
  expect_part(problem(good, "batch_size: 0", ""), "a `batch_size` of at least 1");
  expect_part(problem("a.png\n", "", ""), "list.txt:1: a line is `path path`");
  expect_part(problem("a.png b_label.png\n", "", ""),
              "list.txt:1: the image is 4x5, but its label image b_label.png is 3x6");
  expect_part(problem(good, "root_dir: \"nowhere/\"", ""), "nowhere/a.png: cannot open");
  expect_part(problem(both, "batch_size: 2", ""),
              "list.txt:2: its shape 3x3x6 is not 3x4x5, that of");
  expect_part(problem(both, "batch_size: 2", ""), "give transform_param a crop_size, or set");
  expect_part(problem(good, "", "stride: 0"), "stride is 0; height and width");
  expect_part(problem(good, "", "stride: 5"),
              "list.txt:1: the image is 4x5: smaller than the stride of 5");
  expect_part(problem(good, "", "scale_ratios: 0.5"), "there are 1 scale_ratios");
  expect_part(problem(good, "", "scale_ratios: 2 scale_ratios: 1"), "scale_ratios are 2 and 1");
  expect_part(problem(good, "", "scale_ratios: 0 scale_ratios: 1"), "scale_ratios are 0 and 1");
  expect_part(problem(good, "", "scale_ratios: 1 scale_ratios: inf"), "scale_ratios are 1 and inf");
  expect_part(problem(good, "", "scale_ratios: 1e30 scale_ratios: 1e30"), "list.txt:1: ");
  expect_part(problem(good, "", "upper_width: 3"), "only one of upper_height and upper_width");
  expect_part(problem(good, "", "upper_size: 0"), "a crop of at most 0x0 pixels is none");
  expect_part(problem(good, "", "upper_height: -1 upper_width: 2"), "a crop of at most -1x2");
  expect_part(problem(good, "", "mean_file: \"m\""), "SegData takes no mean_file");
  expect_part(problem(good, "", "scale_factors: 2"), "give the minimum and the maximum factor");
  expect_part(problem(good, "", "crop_size: 3 multi_scale: true"), "takes no multi_scale");
  expect_part(problem(good, "", "resize_param { height: 9 width: 9 }"),
              "not their label images; give scale_ratios");
}

}  // namespace label_images_test
}  // namespace crema::tests
