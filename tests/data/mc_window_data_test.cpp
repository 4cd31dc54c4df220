// McWindowData: masks are cut out as the image is.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <set>

#include "fixtures.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"
#include "windows.h"

namespace crema::tests {
namespace mc_window_data_test {

struct Images {
  Images() {
    folder.write("images/a.png", encode_image(ramp(0), "png"));
    folder.write("images/b.png", encode_image(ramp(100), "png"));
  }

  Folder folder;
};

// The tops of a McWindowData.
struct Masked {
  std::vector<float> data, mask, label;
  Shape mask_shape;
};

std::unique_ptr<Layer> mask_layer(const Images& images, const std::string& windows,
                                  const std::string& fields, Context& context) {
  images.folder.write("windows.txt", windows);
  LayerParameter message;
  EXPECT_TRUE(google::protobuf::TextFormat::MergeFromString(
      cat("type: \"McWindowData\" top: \"data\" top: \"mask\" top: \"label\" mcwindow_data_param { "
          "source: \"windows.txt\" ",
          fields, " }"),
      &message));
  std::unique_ptr<Layer> layer = make_layer(message, true, images.folder.path());
  layer->setup(context, {});
  return layer;
}

Masked masks_of(Layer& layer, Context& context, uint64_t number) {
  Forward pass;
  pass.pass = number;
  EXPECT_FALSE(layer.source()->reshapes(number));
  for (const Shape& shape : layer.infer({}).tops) pass.top.emplace_back(context, shape);
  layer.forward(context, pass);
  return {to_floats(context, pass.top[0]), to_floats(context, pass.top[1]),
          to_floats(context, pass.top[2]), pass.top[1].shape()};
}

std::vector<float> shares(std::vector<float> pixels) {
  for (float& pixel : pixels) pixel /= 255;
  return pixels;
}

TEST(McWindowData, CutsMasksAsTheImage) {
  NEEDS_IMAGES();
  const Images images;
  Context context(Device::cpu);
  const std::string a = "# 0\nimages/a.png\n2 images/a.png images/b.png\n1 9 10\n";
  const auto layer = mask_layer(
      images, a + "3\n4 0.9 2 1 4 3\n3 0.4 0 0 2 2\n8 0.1 1 1 3 3\n",
      "batch_size: 2 crop_size: 3 mask_crop_size: 3 bg_threshold: 0.2 scale: 0.5", context);
  EXPECT_EQ(layer->source()->records(), 3);
  const Masked first = masks_of(*layer, context, 0);
  EXPECT_EQ(first.mask_shape, (Shape{2, 2, 3, 3}));
  EXPECT_EQ(first.data, (std::vector<float>{6, 6.5f, 7, 11, 11.5f, 12, 16, 16.5f, 17, 0, 0.5f, 1, 5,
                                            5.5f, 6, 10, 10.5f, 11}));
  EXPECT_EQ(first.mask, shares({12,  13,  14,  22,  23,  24,  32,  33,  34,  112, 113, 114,
                                122, 123, 124, 132, 133, 134, 0,   1,   2,   10,  11,  12,
                                20,  21,  22,  100, 101, 102, 110, 111, 112, 120, 121, 122}));
  EXPECT_EQ(first.label, (std::vector<float>{4, 3}));
  EXPECT_EQ(masks_of(*layer, context, 1).label, (std::vector<float>{0, 4}));
}

TEST(McWindowData, LeavesWhatLiesOutsideEmptyInMasksToo) {
  NEEDS_IMAGES();
  const Images images;
  Context context(Device::cpu);
  const auto one = [&](const std::string& side) {
    const auto layer =
        mask_layer(images, "# 0\nimages/b.png\n1 images/a.png\n1 9 10\n1\n1 1 0 5 3 8\n",
                   "batch_size: 1 crop_size: 6 context_pad: 1 mask_crop_size: " + side, context);
    return masks_of(*layer, context, 0).mask;
  };
  // Columns -1 to 5 and rows 4 to 10 of an image that has columns 0 to 5 and rows 4 to 8 of them,
  // as in WindowData: 7 x 7 pixels become 14 x 14, or 3 x 3 with round(3 / 7) = 0 columns before,
  // round(18 / 7) = 3 columns and round(15 / 7) = 2 rows.
  EXPECT_EQ(one("14"), shares(placed(4, 0, 5, 6, 10, 12, 0, 2, 14)));
  EXPECT_EQ(one("3"), shares(placed(4, 0, 5, 6, 2, 3, 0, 0, 3)));
  EXPECT_EQ(one("6"), shares(placed(4, 0, 5, 6, 4, 5, 0, 1, 6)));
}

TEST(McWindowData, DrawsAndMirrorsMasksAsTheImage) {
  NEEDS_IMAGES();
  const Images images;
  Context context(Device::cpu);
  const std::string windows =
      "# 0\nimages/a.png\n1 images/a.png\n1 9 10\n3\n1 0.9 0 0 3 3\n2 0.8 0 5 3 8\n9 0.1 6 2 9 5\n";
  const std::string fields =
      "batch_size: 4 fg_fraction: 0.5 crop_size: 6 mask_crop_size: 6 context_pad: 1 mirror: true "
      "shuffle: true";
  const auto layer = mask_layer(images, windows, fields, context);
  EXPECT_EQ(layer->source()->records(), 0);
  std::set<float> classes;
  std::set<std::vector<float>> seen;
  for (uint64_t pass = 0; pass < 20; ++pass) {
    const Masked tops = masks_of(*layer, context, pass);
    EXPECT_EQ(tops.mask, shares(tops.data));
    for (int i = 0; i < 4; ++i) EXPECT_EQ(tops.label[i] > 0, i >= 2) << i;
    classes.insert(tops.label.begin(), tops.label.end());
    for (int i = 0; i < 4; ++i)
      seen.insert({tops.data.begin() + i * 36, tops.data.begin() + (i + 1) * 36});
  }
  EXPECT_EQ(classes, (std::set<float>{0, 1, 2}));
  EXPECT_EQ(seen.size(), 6u);  // three windows, mirrored or not
  const auto again = mask_layer(images, windows, fields, context);
  EXPECT_EQ(masks_of(*again, context, 7).mask, masks_of(*layer, context, 7).mask);
}

TEST(McWindowData, SaysWhatIsWrong) {
  NEEDS_IMAGES();
  const Images images;
  images.folder.write("images/small.png", encode_image(cut_image(ramp(0), 0, 0, 9, 9), "png"));
  Context context(Device::cpu);
  const auto problem = [&](const std::string& mask, const std::string& fields) {
    const std::string windows =
        cat("# 0\nimages/a.png\n1 images/", mask, "\n1 9 10\n1\n1 0.9 0 0 3 3\n");
    return error_of([&] { masks_of(*mask_layer(images, windows, fields, context), context, 0); });
  };
  const std::string good = "batch_size: 1 crop_size: 3 mask_crop_size: 3 ";
  expect_part(problem("small.png", good),
              "windows.txt:6: the image is 9x10, but its mask images/small.png is 9x9; they must");
  expect_part(problem("none.png", good), "none.png: cannot open");
  expect_part(problem("a.png", "batch_size: 1 crop_size: 3"),
              "give mcwindow_data_param a mask_crop");
  expect_part(problem("a.png", "batch_size: 1 crop_size: 3 mask_crop_size: 4294967295"),
              "a mask of 4294967295x4294967295 pixels is larger than any picture");
  expect_part(problem("a.png", "batch_size: 1 mask_crop_size: 3"),
              "give mcwindow_data_param a crop_");
  expect_part(problem("a.png", "crop_size: 3 mask_crop_size: 3"),
              "mcwindow_data_param needs a `batch");
  expect_part(problem("a.png", good + "source: \"\""), "mcwindow_data_param needs a `source`");
  expect_part(problem("a.png", good + "crop_mode: \"sqare\""), "(did you mean \"square\"?)");
  expect_part(problem("a.png", good + "context_pad: 2"), "context_pad is 2, which leaves nothing");
  expect_part(problem("a.png", good + "shuffle: true"),
              "no window of background, but 1 of a batch's 1 must show it");
  expect_part(error_of([&] {
                mask_layer(images, "# 0\nimages/a.png\n1 images/a.png\n1 9 10\n0\n", good, context);
              }),
              "windows.txt: has no window");
}

}  // namespace mc_window_data_test
}  // namespace crema::tests
