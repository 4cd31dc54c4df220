#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "data/databases/hdf5/hdf5_file.h"
#include "data/databases/hdf5/hdf5_source.h"
#include "data/databases/hdf5/hdf5_writer.h"
#include "fixtures.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"
#include "ranks.h"

namespace crema::tests {
namespace hdf5_test {

// Row r of "data" is {first + r, -(first + r)} as doubles, of "label" first + r as whole numbers.
void write_rows(const std::string& path, int first, int rows, int label_rows = -1) {
  std::vector<double> data;
  std::vector<uint64_t> label;
  for (int row = first; row < first + rows; ++row) {
    data.push_back(row);
    data.push_back(-row);
    label.push_back(row);
  }
  if (label_rows >= 0) label.resize(label_rows);
  Hdf5Writer file(path);
  file.doubles("data", {rows, 2, 1}, data.data());
  file.integers("label", label);
  file.text("text", "words");
  file.commit();
}

struct Files {
  Files() {
    write_rows(folder.file("a.h5"), 0, 3);
    write_rows(folder.file("b.h5"), 3, 4);
    std::ofstream(folder.file("list.txt")) << "a.h5\r\n\n" << folder.file("b.h5") << "\n";
  }
  Folder folder;
};

std::unique_ptr<Layer> layer_of(const Files& files, const std::string& fields, Context& context,
                                bool training = true) {
  LayerParameter message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "name: \"d\" type: \"HDF5Data\" top: \"data\" top: \"label\" hdf5_data_param { source: "
      "\"list.txt\" " +
          fields + " }",
      &message));
  std::unique_ptr<Layer> layer = make_layer(message, training, files.folder.path());
  layer->setup(context, {});
  return layer;
}

std::vector<float> labels_of(Layer& layer, Context& context, uint64_t number,
                             DType dtype = DType::f32) {
  Forward pass;
  pass.pass = number;
  for (const Shape& shape : layer.infer({}).tops) pass.top.emplace_back(context, shape, dtype);
  layer.forward(context, pass);
  const std::vector<float> data = to_floats(context, pass.top[0]),
                           labels = to_floats(context, pass.top[1]);
  for (size_t i = 0; i < labels.size(); ++i) {
    EXPECT_EQ(data[2 * i], labels[i]);
    EXPECT_EQ(data[2 * i + 1], -labels[i]);
  }
  return labels;
}

TEST(Hdf5File, LooksIntoGroups) {
  const Folder folder;
  const float values[2] = {1, 2};
  Hdf5Writer writer(folder.file("a.h5"));
  writer.floats("net/weights", {2}, values);
  writer.group("net/inner");
  writer.commit();
  const Hdf5File file(folder.file("a.h5"));
  EXPECT_TRUE(file.has("net/weights"));
  EXPECT_FALSE(file.has("nothing/weights"));
  EXPECT_EQ(file.doubles("net/weights"), (std::vector<double>{1, 2}));
  const std::vector<Hdf5File::Child> children = file.children("net");
  ASSERT_EQ(children.size(), 2u);
  EXPECT_EQ(children[0].name, "inner");
  EXPECT_TRUE(children[0].group);
  EXPECT_EQ(children[1].name, "weights");
  EXPECT_FALSE(children[1].group);
  EXPECT_TRUE(file.children("nothing").empty());
  expect_part(error_of([&] { file.children("net/weights"); }), "has no group \"net/weights\"");
  expect_part(error_of([&] { file.floats("net/wieghts"); }),
              "has no dataset \"net/wieghts\" (did you mean \"weights\"?); it has: inner, weights");
  expect_part(error_of([&] { file.floats("net/inner"); }), "is not a dataset");
}

TEST(Hdf5Data, WalksThroughTheFilesAndWrapsInsideABatch) {
  const Files files;
  Lines log;
  Context context(Device::cpu);
  context.set_log(log);
  const std::unique_ptr<Layer> layer = layer_of(files, "batch_size: 5", context);
  EXPECT_EQ(log.infos, (std::vector<std::string>{
                           "Loading list of HDF5 filenames from: " + files.folder.file("list.txt"),
                           "Number of HDF5 files: 2", "output data size: 5,2,1"}));
  EXPECT_EQ(layer->infer({}).tops, (std::vector<Shape>{{5, 2, 1}, {5}}));
  EXPECT_EQ(labels_of(*layer, context, 0), (std::vector<float>{0, 1, 2, 3, 4}));
  EXPECT_EQ(labels_of(*layer, context, 1), (std::vector<float>{5, 6, 0, 1, 2}));
  EXPECT_EQ(labels_of(*layer, context, 6), (std::vector<float>{2, 3, 4, 5, 6}));
  EXPECT_EQ(labels_of(*layer, context, 1, DType::f64), (std::vector<float>{5, 6, 0, 1, 2}));
}

TEST(Hdf5Data, ShufflesFilesAndRows) {
  const Files files;
  Context context(Device::cpu);
  const std::unique_ptr<Layer> layer = layer_of(files, "batch_size: 7 shuffle: true", context);
  std::set<std::vector<float>> orders;
  std::set<bool> first_file;
  for (uint64_t epoch = 0; epoch < 20; ++epoch) {
    const std::vector<float> labels = labels_of(*layer, context, epoch);
    EXPECT_EQ(labels,
              labels_of(*layer_of(files, "batch_size: 7 shuffle: true", context), context, epoch));
    orders.insert(labels);
    EXPECT_EQ(std::set<float>(labels.begin(), labels.end()).size(), 7u);
    const bool a_first = labels[0] < 3;
    first_file.insert(a_first);
    // A file is used up before the next one begins.
    for (int i = 0; i < (a_first ? 3 : 4); ++i) EXPECT_EQ(labels[i] < 3, a_first);
  }
  EXPECT_GT(orders.size(), 15u);
  EXPECT_EQ(first_file.size(), 2u);
}

TEST(Hdf5Data, RanksShareBatches) {
  const Files files;
  Context context(Device::cpu);
  OnlyRank second(1, 2);
  context.set_world(&second);
  EXPECT_EQ(labels_of(*layer_of(files, "batch_size: 4", context), context, 0),
            (std::vector<float>{4, 5, 6, 0}));
  EXPECT_EQ(labels_of(*layer_of(files, "batch_size: 4", context, false), context, 0),
            (std::vector<float>{0, 1, 2, 3}));
  second.divides_batches = true;
  EXPECT_EQ(labels_of(*layer_of(files, "batch_size: 5", context), context, 1),
            (std::vector<float>{0, 1, 2}));
}

TEST(Hdf5Data, SaysWhatIsWrong) {
  const Files files;
  Context context(Device::cpu);
  const std::string list = files.folder.file("list.txt");
  const auto source = [&](const std::string& content, const std::vector<std::string>& names) {
    std::ofstream(list) << content;
    return error_of([&] { Hdf5Source(list, names); });
  };
  expect_part(error_of([&] { layer_of(files, "", context); }), "batch_size");
  expect_part(
      error_of([&] { layer_of(files, "batch_size: 1 } transform_param { scale: 2", context); }),
      "transform_param");
  expect_part(error_of([&] { Hdf5Source(files.folder.file("none.txt"), {"data"}); }),
              "none.txt: cannot open");
  expect_part(source("\n\n", {"data"}), "names no HDF5 file");
  expect_part(source("c.h5\n", {"data"}), "c.h5: no such file");
  expect_part(source("list.txt\n", {"data"}), "is not an HDF5 file");
  expect_part(source("a.h5\n", {"date"}), "has no dataset \"date\" (did you mean \"data\"?)");
  expect_part(source("a.h5\n", {"text"}), "holds no numbers");
  write_rows(files.folder.file("c.h5"), 0, 3, 2);
  expect_part(source("a.h5\nc.h5\n", {"data", "label"}),
              "\"label\" has 2 rows, but \"data\" has 3");
  const float values[6] = {};
  Hdf5Writer other(files.folder.file("d.h5"));
  other.floats("data", {2, 3, 1}, values);
  other.commit();
  expect_part(source("a.h5\nd.h5\n", {"data"}), "is 3x1, but in");
}

TEST(Hdf5Data, SaysWhichIntegerABlobCannotHold) {
  const Folder folder;
  folder.write("list", "\xEF\xBB\xBF\nrows.h5\n");
  const auto first_label = [&](int label) {
    write_rows(folder.file("rows.h5"), label, 1);
    Hdf5Source source(folder.file("list"), {"label"});
    return source.at(source.locate(0), 0)[0];
  };
  EXPECT_EQ(first_label(16777216), 16777216);
  EXPECT_EQ(first_label(16777218), 16777218);
  expect_part(error_of([&] { first_label(16777217); }),
              "rows.h5: dataset \"label\" holds the integer 16777217, but blobs are float32");
}

// A layer that writes to `path`.
std::unique_ptr<Layer> output_layer(const std::string& path, Context& context) {
  LayerParameter message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      cat("name: \"o\" type: \"HDF5Output\" bottom: \"d\" bottom: \"l\" hdf5_output_param { "
          "file_name: \"",
          path, "\" }"),
      &message));
  std::unique_ptr<Layer> layer = make_layer(message, false);
  layer->setup(context, {});
  return layer;
}

void put_out(Layer& layer, Context& context, const Shape& shape, const std::vector<float>& data,
             const Shape& label_shape, const std::vector<float>& label) {
  layer.infer({shape, label_shape});
  Forward pass;
  pass.bottom = {Tensor(context, shape), Tensor(context, label_shape)};
  from_floats(context, data.data(), pass.bottom[0]);
  from_floats(context, label.data(), pass.bottom[1]);
  layer.forward(context, pass);
}

TEST(Hdf5Output, WritesTheReferencesFile) {
  const Hdf5File expected(formats() + "/hdf5_output.h5");
  const Folder folder;
  Context context(Device::cpu);
  const std::string path = folder.file("out.h5");
  {
    const auto layer = output_layer(path, context);
    put_out(*layer, context, expected.shape("data"), expected.floats("data"), {4},
            expected.floats("label"));
    EXPECT_TRUE(folder.names().empty());
  }
  const Hdf5File written(path);
  for (const std::string name : {"data", "label"}) {
    EXPECT_EQ(written.shape(name), expected.shape(name)) << name;
    EXPECT_EQ(written.floats(name), expected.floats(name)) << name;
  }
}

TEST(Hdf5Output, GathersTheRowsOfAllPasses) {
  const Folder folder;
  Lines log;
  Context context(Device::cpu);
  context.set_log(log);
  const std::string path = folder.file("out.h5");
  {
    const auto layer = output_layer(path, context);
    put_out(*layer, context, {2, 2}, {1, 2, 3, 4}, {2}, {5, 6});
    put_out(*layer, context, {1, 2}, {7, 8}, {1}, {9});
  }
  const Hdf5File written(path);
  EXPECT_EQ(written.shape("data"), (Shape{3, 2, 1, 1}));
  EXPECT_EQ(written.floats("data"), (std::vector<float>{1, 2, 3, 4, 7, 8}));
  EXPECT_EQ(written.floats("label"), (std::vector<float>{5, 6, 9}));
  EXPECT_TRUE(log.has("Wrote 3 rows to HDF5 file " + path));
  output_layer(path, context);  // without a pass
  EXPECT_EQ(Hdf5File(path).floats("label").size(), 3u);
}

TEST(Hdf5Output, SaysWhatIsWrong) {
  const Folder folder;
  Lines log;
  Context context(Device::cpu);
  context.set_log(log);
  expect_part(error_of([&] { output_layer("", context); }), "needs a `file_name`");
  expect_part(error_of([&] { output_layer(folder.file("none/out.h5"), context); }), "none/out.h5");
  std::filesystem::create_directory(folder.file("inner"));
  {
    const auto layer = output_layer(folder.file("inner/out.h5"), context);
    expect_part(error_of([&] {
                  layer->infer({Shape{2, 3}, Shape{3}});
                }),
                "data has 2 rows, but label has 3");
    expect_part(error_of([&] { layer->infer({Shape{2, 1, 1, 1, 1}, Shape{2}}); }), "2x1x1x1x1");
    put_out(*layer, context, {1, 2}, {7, 8}, {1}, {9});
    expect_part(error_of([&] {
                  layer->infer({Shape{1, 3}, Shape{1}});
                }),
                "rows of data are 1x3x1x1 now, but were 1x2x1x1");
    std::filesystem::remove_all(folder.file("inner"));
  }
  ASSERT_EQ(log.errors.size(), 1u);
  expect_part(log.errors[0], "layer \"o\": " + folder.file("inner/out.h5"));
}

}  // namespace hdf5_test
}  // namespace crema::tests
