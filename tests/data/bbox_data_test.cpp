// BboxData: images and the boxes of their objects.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "data/images/image.h"
#include "fixtures.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"

namespace crema::tests {
namespace bbox_data_test {

// Images of 2 x 3 pixels, 100 and 50 everywhere.
struct Streets {
  Streets() {
    folder.write("a.png", encode_image({3, 2, 3, std::vector<uint8_t>(18, 100)}, "png"));
    folder.write("b.png", encode_image({3, 2, 3, std::vector<uint8_t>(18, 50)}, "png"));
    folder.write("a.txt", "34 45 234 215 0");
    folder.write("b.txt", "1 2 3 4 5\n6 7.9 8 9 10\n");
    folder.write("none.txt", "");
  }
  std::unique_ptr<Layer> layer(const std::string& list, Context& context) const {
    folder.write("list.txt", list);
    LayerParameter message;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        "name: \"d\" type: \"BboxData\" top: \"data\" top: \"bbox\" transform_param { scale: 0.5 } "
        "bbox_data_param { source: \"list.txt\" batch_size: 2 is_color: true }",
        &message));
    std::unique_ptr<Layer> layer = make_layer(message, true, folder.path());
    layer->setup(context, {});
    return layer;
  }
  std::string problem(const std::string& list) const {
    Context context(Device::cpu);
    return error_of([&] { layer(list, context); });
  }
  Folder folder;
};

TEST(BboxData, GivesTheBoxesOfEachImage) {
  NEEDS_IMAGES();
  const Streets streets;
  Context context(Device::cpu);
  const std::unique_ptr<Layer> layer =
      streets.layer("a.png a.txt\nb.png b.txt\nb.png none.txt\n", context);
  const std::vector<Shape> shapes = layer->infer({}).tops;
  EXPECT_EQ(shapes, (std::vector<Shape>{{2, 3, 2, 3}, {2, 10}}));
  Forward pass;
  for (const Shape& shape : shapes) pass.top.emplace_back(context, shape);
  layer->forward(context, pass);
  EXPECT_EQ(to_floats(context, pass.top[0])[0], 50);
  EXPECT_EQ(to_floats(context, pass.top[0])[18], 25);
  EXPECT_EQ(
      to_floats(context, pass.top[1]),
      (std::vector<float>{34, 45, 234, 215, 0, -1, -1, -1, -1, -1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
  pass.pass = 1;
  layer->forward(context, pass);
  EXPECT_EQ(to_floats(context, pass.top[1])[0], -1);
  EXPECT_EQ(to_floats(context, pass.top[1])[10], 34);
  EXPECT_EQ(layer->source()->records(), 3);
}

TEST(BboxData, SaysWhatAFileOfBoxesNeeds) {
  NEEDS_IMAGES();
  const Streets streets;
  streets.folder.write("words.txt", "1 2 3 4 car");
  streets.folder.write("short.txt", "1 2 3 4");
  streets.folder.write("fraction.txt", "1 2 3 4 5\n1 2 3 4 1.5");
  streets.folder.write("large.txt", "1 2 3 4 16777217");
  streets.folder.write("far.txt", "1 2 inf 4 1");
  streets.folder.write("farther.txt", "1 2\n3 1e30 1");
  expect_part(streets.problem("a.png words.txt"),
              "words.txt:1: found `car` where the class of a box was expected");
  expect_part(streets.problem("a.png fraction.txt"), "fraction.txt:2: found `1.5` where the class");
  expect_part(streets.problem("a.png large.txt"), "large.txt:1: the label 16777217 cannot be kept");
  expect_part(streets.problem("a.png far.txt"), "far.txt:1: found `inf` where a corner of a box");
  expect_part(streets.problem("a.png farther.txt"), "farther.txt:2: a corner of a box is 1e+30");
  expect_part(streets.problem("a.png short.txt"), "has 4 numbers");
  expect_part(streets.problem("a.png none.txt"), "not one of its 1 images has an object");
}

}  // namespace bbox_data_test
}  // namespace crema::tests
