// CoSData: a table with a column for each top.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "data/databases/hdf5/hdf5_writer.h"
#include "fixtures.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"

namespace crema::tests {
namespace cos_data_test {

// Three rows: images of 1x2x2, labels, and two words each.
struct Table : Folder {
  Table() {
    std::vector<float> images, labels, words;
    for (int row = 0; row < 3; ++row) {
      for (int i = 0; i < 4; ++i) images.push_back(static_cast<float>(10 * row + i));
      labels.push_back(static_cast<float>(row));
      for (int i = 0; i < 2; ++i) words.push_back(static_cast<float>(100 + 2 * row + i));
    }
    Hdf5Writer writer(file("rows.h5"));
    writer.floats("pixels", {3, 1, 2, 2}, images.data());
    writer.floats("class", {3}, labels.data());
    writer.floats("sentence", {3, 2}, words.data());
    writer.commit();
    write("list.txt", "rows.h5\n");
  }

  std::unique_ptr<Layer> layer(const std::string& columns, Context& context,
                               const std::string& source = "list.txt") const {
    LayerParameter message;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        cat("name: \"d\" type: \"CoSData\" top: \"a\" top: \"b\" top: \"c\" source_class: "
            "\"com.yahoo.ml.caffe.DataFrameSource\" cos_data_param { source: \"",
            source, "\" batch_size: 2 ", columns, "}"),
        &message));
    std::unique_ptr<Layer> layer = make_layer(message, false, path());
    layer->setup(context, {});
    return layer;
  }
};

const std::string kImage =
    "top { name: \"pixels\" type: RAW_IMAGE channels: 1 height: 2 width: 2 transform_param { "
    "scale: 2 } } ";
const std::string kLabel = "top { name: \"class\" type: STRING channels: 1 height: 1 width: 1 } ";
const std::string kWords =
    "top { name: \"sentence\" type: INT_ARRAY channels: 2 sample_num_axes: 1 transpose: true } ";

TEST(CoSData, ShowsAColumnInEachTop) {
  const Table table;
  Context context(Device::cpu);
  const auto layer = table.layer(kImage + kLabel + kWords, context);
  EXPECT_EQ(layer->source()->records(), 3);
  const std::vector<Shape> shapes = layer->infer({}).tops;
  EXPECT_EQ(shapes, (std::vector<Shape>{{2, 1, 2, 2}, {2, 1, 1, 1}, {2, 2}}));
  Forward pass;
  const Prepared prepared = layer->prepare(context, {});
  pass.state = prepared.state.get();
  pass.pass = 1;  // the last row, and the first one again
  layer->source()->reshapes(1);
  for (const Shape& shape : shapes) pass.top.emplace_back(context, shape);
  layer->forward(context, pass);
  EXPECT_EQ(to_floats(context, pass.top[0]), (std::vector<float>{40, 42, 44, 46, 0, 2, 4, 6}));
  EXPECT_EQ(to_floats(context, pass.top[1]), (std::vector<float>{2, 0}));
  EXPECT_EQ(to_floats(context, pass.top[2]), (std::vector<float>{104, 100, 105, 101}));
}

TEST(CoSData, SaysWhatIsWrong) {
  const Table table;
  Context context(Device::cpu);
  const auto problem = [&](const std::string& columns, const std::string& source = "list.txt") {
    return error_of([&] { table.layer(columns, context, source); });
  };
  expect_part(
      problem(kImage + kLabel + kWords, "hdfs:///mnist_train_dataframe/"),
      "there is no file hdfs:///mnist_train_dataframe/; CaffeOnSpark reads a DataFrame there");
  expect_part(problem(kImage + kLabel), "the layer has 3 tops, but cos_data_param describes 2");
  expect_part(
      problem(kImage + kLabel + "top { name: \"sentence\" channels: 3 sample_num_axes: 1 } "),
      "column sentence has rows of 2 in");
  expect_part(problem(kImage + kLabel + "top { name: \"sentence\" channels: 2 transpose: true } "),
              "column sentence has transpose, which is for samples of one axis");
  expect_part(problem(kImage + "top { name: \"class\" channels: 1 transform_param { scale: 2 } } " +
                      kWords),
              "column class has a transform_param; only the first one is transformed");
  expect_part(problem("top { name: \"pixels\" channels: 1 height: 2 width: 2 out_height: 1 } " +
                      kLabel + kWords),
              "transform_param makes 2x1x2x2 of column pixels, but out_channels");
}

}  // namespace cos_data_test
}  // namespace crema::tests
