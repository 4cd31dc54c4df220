// MatWrite and MatRead: blobs in MATLAB's files.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <cstring>

#include "data/lists/mat_file.h"
#include "fixtures.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"

namespace crema::tests {
namespace mat_test {

std::unique_ptr<Layer> layer_of(const std::string& text, const std::vector<Shape>& bottoms,
                                Context& context, const std::string& folder) {
  LayerParameter message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString("name: \"m\" " + text, &message));
  std::unique_ptr<Layer> layer = make_layer(message, false, folder);
  layer->setup(context, bottoms);
  return layer;
}

// A blob of this shape with the values first, first + 1, ...
Tensor counted(Context& context, const Shape& shape, float first) {
  std::vector<float> values(static_cast<size_t>(shape.count()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = first + static_cast<float>(i);
  Tensor tensor(context, shape);
  std::memcpy(tensor.data<float>(), values.data(), values.size() * sizeof(float));
  return tensor;
}

void run_passes(Layer& layer, Context& context, const std::vector<Shape>& bottoms, int passes) {
  for (int number = 0; number < passes; ++number) {
    Forward pass;
    const Prepared prepared = layer.prepare(context, {});
    pass.state = prepared.state.get();
    pass.pass = static_cast<uint64_t>(number);
    for (size_t i = 0; i < bottoms.size(); ++i)
      pass.bottom.push_back(
          counted(context, bottoms[i], static_cast<float>(100 * number + 1000 * i)));
    layer.infer(bottoms);
    layer.forward(context, pass);
  }
}

std::set<std::string> files_in(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& [name, content] : contents(folder)) names.insert(name);
  return names;
}

// The bytes that scipy.io.savemat(..., format="5") and MATLAB's save -v6 write, except for the
// text.
TEST(MatFile, IsOfVersion5) {
  const float values[] = {1, 2, 3, 4, 5, 6};
  const std::string file = mat_of("data", {3, 2, 1, 1}, values);
  EXPECT_EQ(file.size(), 128u + 8 + 16 + 24 + 16 + 32);
  EXPECT_EQ(file.substr(0, 19), "MATLAB 5.0 MAT-file");
  EXPECT_EQ(file.substr(124, 4), std::string("\0\1IM", 4));
  const auto word = [&](size_t at) {
    uint32_t value;
    std::memcpy(&value, file.data() + at, sizeof value);
    return value;
  };
  const std::vector<std::pair<size_t, uint32_t>> words = {
      {128, 14}, {132, 88}, {136, 6}, {140, 8}, {144, 7}, {152, 5}, {156, 16}, {160, 3},
      {164, 2},  {168, 1},  {172, 1}, {176, 1}, {180, 4}, {192, 7}, {196, 24}};
  for (const auto& [at, value] : words) EXPECT_EQ(word(at), value) << at;
  EXPECT_EQ(file.substr(184, 4), "data");
  const MatArray array = read_mat(file, "data");
  EXPECT_EQ(array.extents, (std::vector<int64_t>{3, 2, 1, 1}));
  EXPECT_EQ(array.values, (std::vector<double>{1, 2, 3, 4, 5, 6}));
}

TEST(MatWrite, WritesAFileForEachBottomAndPass) {
  const Folder folder;
  Context context(Device::cpu);
  folder.write("ids.txt", "2007_000033.jpg 1\n\n2007_000042.jpg\n");
  const std::vector<Shape> bottoms = {{1, 2, 2, 3}, {1, 2}};
  const std::string out = folder.file("features/fc8/");
  Lines log;
  context.set_log(log);
  const auto layer =
      layer_of(cat("type: \"MatWrite\" bottom: \"a\" bottom: \"b\" mat_write_param { "
                   "prefix: \"",
                   out, "\" source: \"ids.txt\" strip: 4 }"),
               bottoms, context, folder.path());
  run_passes(*layer, context, bottoms, 2);
  EXPECT_TRUE(log.warnings.empty());
  EXPECT_EQ(files_in(out),
            (std::set<std::string>{"2007_000033_blob_0.mat", "2007_000033_blob_1.mat",
                                   "2007_000042_blob_0.mat", "2007_000042_blob_1.mat"}));
  // Width, height, channels, images: the order of a blob is that of MATLAB with its axes turned round.
  const MatArray second = read_mat(read_file(out + "2007_000042_blob_0.mat"), "data");
  EXPECT_EQ(second.extents, (std::vector<int64_t>{3, 2, 2, 1}));
  EXPECT_EQ(second.values,
            (std::vector<double>{100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111}));
  EXPECT_EQ(read_mat(read_file(out + "2007_000033_blob_1.mat"), "data").extents,
            (std::vector<int64_t>{1, 1, 2, 1}));
  // More passes than names begin again with the first one.
  run_passes(*layer, context, bottoms, 4);
  ASSERT_EQ(log.warnings.size(), 1u);
  expect_part(log.warnings[0], "ids.txt has 2 names, and this is pass 3: files are written again");
  EXPECT_EQ(read_mat(read_file(out + "2007_000042_blob_0.mat"), "data").values[0], 300);
}

TEST(MatWrite, CountsPassesWithoutAList) {
  const Folder folder;
  Context context(Device::cpu);
  const std::string fields = cat("type: \"MatWrite\" bottom: \"a\" mat_write_param { prefix: \"",
                                 folder.file("out/x_"), "\" ");
  const auto layer = layer_of(fields + "period: 2 }", {{1, 3}}, context, "");
  run_passes(*layer, context, {{1, 3}}, 4);
  EXPECT_EQ(files_in(folder.file("out")),
            (std::set<std::string>{"x_iter_0_blob_0.mat", "x_iter_2_blob_0.mat"}));
  const auto problem = [&](const std::string& more, const Shape& bottom = {1, 3}) {
    return error_of([&] {
      run_passes(*layer_of(fields + more, {bottom}, context, folder.path()), context, {bottom}, 1);
    });
  };
  expect_part(problem("period: 0 }"), "period is 0: every 1, 2, ... passes are written");
  expect_part(problem("source: \"ids\" }"), "ids: cannot open");
  folder.write("ids", "abc\n");
  expect_part(problem("strip: -1 source: \"ids\" }"), "strip is -1");
  expect_part(problem("strip: 3 source: \"ids\" }"),
              "ids:1: `abc` is no longer than the 3 characters");
  expect_part(problem("}", {1, 1, 1, 1, 1}), "MatWrite writes blobs of up to four axes");
}

TEST(MatRead, ReadsWhatMatWriteWrote) {
  const Folder folder;
  Context context(Device::cpu);
  folder.write("ids.txt", "a\nb\nc\n");
  const std::vector<Shape> bottoms = {{1, 2, 2, 3}, {1, 4, 1, 1}, {1, 1, 2, 1}};
  const std::string fields = cat("_param { prefix: \"", folder.file("m/"), "\" ");
  const auto writer = layer_of("type: \"MatWrite\" mat_write" + fields + "source: \"ids.txt\" }",
                               bottoms, context, folder.path());
  run_passes(*writer, context, bottoms, 3);
  const std::string tops = "type: \"MatRead\" top: \"x\" top: \"y\" top: \"z\" ";
  const auto layer = layer_of(tops + "mat_read" + fields + "source: \"ids.txt\" batch_size: 2 }",
                              {}, context, folder.path());
  EXPECT_EQ(layer->source()->records(), 3);
  const std::vector<Shape> shapes = layer->infer({}).tops;
  EXPECT_EQ(shapes, (std::vector<Shape>{{2, 2, 2, 3}, {2, 4, 1, 1}, {2, 1, 2, 1}}));
  Forward pass;
  const Prepared prepared = layer->prepare(context, {});
  pass.state = prepared.state.get();
  pass.pass = 1;  // c, and a again
  layer->source()->reshapes(1);
  for (const Shape& shape : shapes) pass.top.emplace_back(context, shape);
  layer->forward(context, pass);
  const std::vector<float> x = to_floats(context, pass.top[0]);
  EXPECT_EQ(x[0], 200);
  EXPECT_EQ(x[11], 211);
  EXPECT_EQ(x[12], 0);
  EXPECT_EQ(to_floats(context, pass.top[1]),
            (std::vector<float>{1200, 1201, 1202, 1203, 1000, 1001, 1002, 1003}));
  EXPECT_EQ(to_floats(context, pass.top[2]), (std::vector<float>{2200, 2201, 2000, 2001}));
  // One file has another shape; then two images.
  const float values[8] = {};
  const auto problem = [&](const std::vector<int64_t>& extents) {
    folder.write("m/b_blob_0.mat", mat_of("data", extents, values));
    return error_of([&] {
      const auto bad = layer_of(
          "type: \"MatRead\" top: \"x\" mat_read" + fields + "source: \"ids.txt\" batch_size: 2 }",
          {}, context, folder.path());
      bad->source()->reshapes(0);
      Forward first;
      const Prepared prepared = bad->prepare(context, {});
      first.state = prepared.state.get();
      first.top.emplace_back(context, Shape{2, 2, 2, 3});
      bad->forward(context, first);
    });
  };
  expect_part(problem({2, 2, 2}),
              "b_blob_0.mat: is 2x2x2, but the array of the first name is 2x2x3");
  expect_part(problem({2, 2, 1, 2}), "b_blob_0.mat: variable data has 2 images on its fourth axis");
  expect_part(error_of([&] {
                layer_of("type: \"MatRead\" top: \"x\" mat_read" + fields + "}", {}, context, "");
              }),
              "m/iter_0_blob_0.mat; give mat_read_param a `source`");
}

}  // namespace mat_test
}  // namespace crema::tests
