// ImageGtData: which field shows which object.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <set>

#include "data/images/image.h"
#include "fixtures.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"

namespace crema::tests {
namespace image_gt_data_test {

// a.png, 32 x 16, is 100 everywhere.
struct Street {
  Street() {
    folder.write("a.png", encode_image({3, 16, 32, std::vector<uint8_t>(16 * 32 * 3, 100)}, "png"));
  }
  std::unique_ptr<Layer> layer(const std::string& list, const std::string& fields,
                               Context& context) const {
    folder.write("list.txt", list);
    LayerParameter message;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        "name: \"d\" type: \"ImageGtData\" top: \"data\" top: \"map\" top: \"boxes\" "
        "transform_param { mean_value: 90 } image_gt_data_param { source: \"list.txt\" batch_size: "
        "1 "
        "scale: 0.5 downsample_rate: 8 field_h: 8 field_w: 8 output_gt_boxes: true " +
            fields + " }",
        &message));
    std::unique_ptr<Layer> layer = make_layer(message, true, folder.path());
    layer->setup(context, {});
    return layer;
  }
  Folder folder;
};

struct Tops {
  std::vector<float> data, map, boxes;
  Shape boxes_shape;
};

Tops batch_of(Layer& layer, Context& context, uint64_t number) {
  Forward pass;
  pass.pass = number;
  for (const Shape& shape : layer.infer({}).tops) pass.top.emplace_back(context, shape);
  const Prepared prepared = layer.prepare(context, {});
  pass.state = prepared.state.get();
  layer.forward(context, pass);
  Tops tops{to_floats(context, pass.top[0]), to_floats(context, pass.top[1]),
            to_floats(context, pass.top[2]), state_of<DynamicTops>(pass).tops[2]};
  tops.boxes.resize(tops.boxes_shape.count());
  return tops;
}

std::string image(const std::string& objects, const std::string& unseen = "0") {
  return "# 0\na.png\n3\n16\n32\n" + objects + "\n" + unseen + "\n";
}

// Positions (0, 0) to (1, 3), eight pixels apart.
std::vector<float> channel(const Tops& tops, int c) {
  return {tops.map.begin() + c * 8, tops.map.begin() + (c + 1) * 8};
}

TEST(ImageGtData, PutsObjectsOnTheFieldsTheyFill) {
  NEEDS_IMAGES();
  const Street street;
  Context context(Device::cpu);
  // Exactly the field of (0, 1); half of that of (1, 3), which is enough to be put there at last.
  const Tops tops =
      batch_of(*street.layer(image("2\n2 0 8 0 16 8\n1 0 24 8 28 16"), "", context), context, 0);
  EXPECT_EQ(tops.data, std::vector<float>(3 * 16 * 32, 5));
  EXPECT_EQ(channel(tops, 0), (std::vector<float>{0, 2, 0, 0, 0, 0, 0, 1}));
  EXPECT_EQ(channel(tops, 1), (std::vector<float>{0, 12, 0, 0, 0, 0, 0, 26}));
  EXPECT_EQ(channel(tops, 2), (std::vector<float>{0, 4, 0, 0, 0, 0, 0, 12}));
  EXPECT_EQ(channel(tops, 3), (std::vector<float>{0, 8, 0, 0, 0, 0, 0, 4}));
  EXPECT_EQ(channel(tops, 4), (std::vector<float>{0, 8, 0, 0, 0, 0, 0, 8}));
  EXPECT_EQ(channel(tops, 5), (std::vector<float>{0, 1, 0, 0, 0, 0, 0, 0.5f}));
  EXPECT_EQ(tops.boxes_shape, (Shape{2, 7, 1, 1}));
  EXPECT_EQ(tops.boxes, (std::vector<float>{0, 8, 0, 16, 8, 2, 0, 0, 24, 8, 28, 16, 1, 0}));
}

TEST(ImageGtData, LeavesOutWhatIsIgnoredOrUnseen) {
  NEEDS_IMAGES();
  const Street street;
  Context context(Device::cpu);
  const Tops tops =
      batch_of(*street.layer(image("1\n2 1 8 0 16 8", "1\n0 8 16 16"), "", context), context, 0);
  EXPECT_EQ(channel(tops, 0), std::vector<float>(8, 0));
  EXPECT_EQ(channel(tops, 5), (std::vector<float>{0, 1, 0, 0, 1, 1, 0, 0}));
  EXPECT_EQ(tops.boxes[6], 1);
  const Tops small =
      batch_of(*street.layer(image("1\n2 0 8 0 16 8"), "min_gt_height: 10", context), context, 0);
  EXPECT_EQ(channel(small, 0), std::vector<float>(8, 0));
  const Tops none = batch_of(*street.layer(image("0"), "", context), context, 0);
  EXPECT_EQ(none.boxes, (std::vector<float>{0, 1, 1, 2, 2, 1, 1}));
}

TEST(ImageGtData, ZoomsAndCropsAroundAnObject) {
  NEEDS_IMAGES();
  const Street street;
  Context context(Device::cpu);
  const auto layer = street.layer(
      image("1\n2 0 8 0 16 8"),
      "crop_width: 16 crop_height: 16 do_multiple_scale: true min_scale: 4 max_scale: 16", context);
  std::set<float> widths, padding;
  for (uint64_t i = 0; i < 60; ++i) {
    const Tops tops = batch_of(*layer, context, i);
    widths.insert(tops.boxes[3] - tops.boxes[1]);
    padding.insert(tops.data.begin(), tops.data.end());
  }
  EXPECT_EQ(widths.size(), 5u);  // 4 to 16, half octaves apart
  EXPECT_NEAR(*widths.begin(), 4, 1e-4);
  EXPECT_NEAR(*widths.rbegin(), 16, 1e-4);
  EXPECT_EQ(padding, (std::set<float>{0, 5}));
}

TEST(ImageGtData, SaysWhatIsWrong) {
  NEEDS_IMAGES();
  const Street street;
  Context context(Device::cpu);
  const auto problem = [&](const std::string& list, const std::string& fields) {
    return error_of([&] { batch_of(*street.layer(list, fields, context), context, 0); });
  };
  expect_part(problem("a.png\n", ""), "where an image, `# index`, was expected");
  expect_part(problem(image("1\n0 0 1 1 2 2"), ""), "list.txt:7: an object has the class 0");
  expect_part(problem(image("1\n1 0 inf 1 2 2"), ""), "found `inf` where a corner of a box");
  expect_part(problem(image("1\n1 0 nan 1 2 2"), ""), "found `nan` where a corner of a box");
  expect_part(problem(image("1\n1 0 1 1 9223372036854775808 2"), ""),
              "list.txt:7: a corner of a box is 9.22337e+18, farther out");
  expect_part(problem(image("1\n16777217 0 1 1 2 2"), ""),
              "list.txt:7: the label 16777217 cannot be kept");
  expect_part(problem(image("0"), "crop_width: 64"), "too small for a crop of");
  expect_part(problem(image("0"), "downsample_rate: 4"), "4 are needed");
  expect_part(problem(image("0"), "field_h: 4"), "1 downsample_rate, 2 field_h");
  expect_part(problem(image("0"), "resize_width: 8"), "give both");
}

}  // namespace image_gt_data_test
}  // namespace crema::tests
