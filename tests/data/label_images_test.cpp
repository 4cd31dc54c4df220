// DenseImageData, ImageSegData and ImageLabelmapData.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <set>

#include "data/image.h"
#include "fixtures.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"

namespace crema::tests {
namespace {

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
    const std::string block =
        type == "DenseImageData" ? "dense_image_data_param" : "image_data_param";
    EXPECT_TRUE(google::protobuf::TextFormat::MergeFromString(
        cat("transform_param { ", transform, " } ", block,
            " { source: \"list.txt\" is_color: false ", fields, " }"),
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
  layer.reshapes(number);
  for (const Shape& shape : layer.infer({}).tops) pass.top.emplace_back(context, shape);
  layer.forward(context, pass);
  Blobs blobs;
  for (const Tensor& top : pass.top) blobs.push_back(to_floats(context, top));
  if (shapes) *shapes = layer.infer({}).tops;
  return blobs;
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
  EXPECT_EQ(layer->records(), 2);
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
  const auto none = files.layer("ImageSegData", "label_type: NONE", "crop_size: 3", context);
  EXPECT_EQ(batch_of(*none, context, 1)[1], std::vector<float>(9, 255));
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
  expect_part(problem("a.png 300\n", "label_type: IMAGE", "", seg), "label 300 is no integer from 0");
}

}  // namespace
}  // namespace crema::tests
