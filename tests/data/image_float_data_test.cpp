// ImageFloatData: images with numbers, weights, and a channel from another image.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "data/images/image.h"
#include "fixtures.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"

namespace crema::tests {
namespace image_float_data_test {

// Images of 2 x 3 pixels, 100 and 50 everywhere, with grey ones of 7 and 9 next to them.
struct Faces {
  Faces() {
    std::filesystem::create_directory(folder.file("heat"));
    folder.write("a.png", encode_image({3, 2, 3, std::vector<uint8_t>(18, 100)}, "png"));
    folder.write("b.png", encode_image({3, 2, 3, std::vector<uint8_t>(18, 50)}, "png"));
    folder.write("heat/a.png", encode_image({1, 2, 3, std::vector<uint8_t>(6, 7)}, "png"));
    folder.write("heat/b.png", encode_image({1, 2, 3, std::vector<uint8_t>(6, 9)}, "png"));
    folder.write("list.txt", "a.png 0.5 0.25 3\nb.png 0.75 0 2\n");
  }
  std::unique_ptr<Layer> layer(const std::string& more, Context& context) const {
    LayerParameter message;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        cat("name: \"d\" type: \"ImageFloatData\" top: \"data\" top: \"label\" "
            "image_data_param { source: \"list.txt\" batch_size: 2 } ",
            more),
        &message));
    std::unique_ptr<Layer> layer = make_layer(message, true, folder.path());
    layer->setup(context, {});
    return layer;
  }
  std::string problem(const std::string& more) const {
    Context context(Device::cpu);
    return error_of([&] { layer(more, context); });
  }
  Folder folder;
};

Forward run(Context& context, Layer& layer) {
  Forward pass;
  for (const Shape& shape : layer.infer({}).tops) pass.top.emplace_back(context, shape);
  layer.forward(context, pass);
  return pass;
}

TEST(ImageFloatData, GivesTheNumbersOfEachImage) {
  NEEDS_IMAGES();
  const Faces faces;
  Context context(Device::cpu);
  const Forward pass =
      run(context, *faces.layer("image_float_data_param { label_dim: 3 }", context));
  EXPECT_EQ(pass.top[0].shape(), (Shape{2, 3, 2, 3}));
  EXPECT_EQ(pass.top[1].shape(), (Shape{2, 3}));
  EXPECT_EQ(to_floats(context, pass.top[1]), (std::vector<float>{0.5, 0.25, 3, 0.75, 0, 2}));
}

TEST(ImageFloatData, GivesWeightsAndAChannelMore) {
  NEEDS_IMAGES();
  const Faces faces;
  Context context(Device::cpu);
  const Forward pass =
      run(context,
          *faces.layer("top: \"weight\" image_float_data_param { label_dim: 2 hard_sample: true "
                       "with_heatmap: true heatmap_dir: \"heat/\" }",
                       context));
  EXPECT_EQ(pass.top[0].shape(), (Shape{2, 4, 2, 3}));
  EXPECT_EQ(to_floats(context, pass.top[1]), (std::vector<float>{0.5, 0.25, 0.75, 0}));
  EXPECT_EQ(to_floats(context, pass.top[2]), (std::vector<float>{3, 2}));
  const std::vector<float> data = to_floats(context, pass.top[0]);
  EXPECT_EQ(data[17], 100);
  EXPECT_EQ(data[18], 7);
  EXPECT_EQ(data[24], 50);
  EXPECT_EQ(data[47], 9);
}

TEST(ImageFloatData, SaysWhatItNeeds) {
  NEEDS_IMAGES();
  const Faces faces;
  expect_part(faces.problem("image_float_data_param { label_dim: 4 }"), "has 3 numbers, but");
  expect_part(faces.problem("image_float_data_param { label_dim: 3 hard_sample: true }"),
              "hard_sample needs a weight");
  expect_part(faces.problem("image_float_data_param { with_heatmap: true }"), "no heatmap_dir");
  faces.folder.write("heat/a.png", encode_image({1, 2, 2, std::vector<uint8_t>(4, 7)}, "png"));
  expect_part(faces.problem("image_float_data_param { with_heatmap: true heatmap_dir: \"heat/\" }"),
              "new_height and new_width make them equal");
}

}  // namespace image_float_data_test
}  // namespace crema::tests
