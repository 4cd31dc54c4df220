// Model: a program sees what the Net computes.
#include <algorithm>
#include <numeric>
#include <thread>

#include "base/png.h"
#include "crema.h"
#include "net/prototxt/net_input.h"
#include "net/weights/weights.h"
#include "support.h"

namespace crema::tests {
namespace model_test {

using Dims = std::vector<int64_t>;

const char* const kNet = R"(
  name: "small"
  layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 2 dim: 3 dim: 9 dim: 9 } } }
  layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
    convolution_param { num_output: 16 kernel_size: 3 weight_filler { type: "xavier" } } }
  layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
  layer { name: "pool" type: "Pooling" bottom: "conv" top: "pool" pooling_param { kernel_size: 2 stride: 2 } }
  layer { name: "fc" type: "InnerProduct" bottom: "pool" top: "fc"
    inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
  layer { name: "prob" type: "Softmax" bottom: "fc" top: "prob" }
)";

std::vector<float> numbers(int64_t count, float from = 0) {
  std::vector<float> values(count);
  for (int64_t i = 0; i < count; ++i) values[i] = from + static_cast<float>((i * 7) % 11) / 11;
  return values;
}

class ModelTest : public testing::Test {
 protected:
  ModelTest() { folder_.write("net.prototxt", kNet); }
  std::string file() const { return folder_.file("net.prototxt"); }
  Model model(ModelOptions options = {}) const { return Model(file(), std::move(options)); }
  std::vector<float> forward(Model& model, const std::vector<float>& input) const {
    model.set_input("data", input);
    model.forward();
    return model.values("prob");
  }

  Folder folder_;
};

TEST_F(ModelTest, ListsInputsAndOutputs) {
  const Model two = model(), five = model({.batch = 5});
  EXPECT_EQ(two.name(), "small");
  ASSERT_EQ(two.inputs().size(), 1u);
  EXPECT_EQ(two.inputs()[0].name, "data");
  EXPECT_EQ(two.inputs()[0].shape, Dims({2, 3, 9, 9}));
  EXPECT_EQ(two.inputs()[0].dtype, "float32");
  ASSERT_EQ(two.outputs().size(), 1u);
  EXPECT_EQ(two.outputs()[0].name, "prob");
  EXPECT_EQ(two.outputs()[0].shape, Dims({2, 4}));
  EXPECT_EQ(five.inputs()[0].shape, Dims({5, 3, 9, 9}));
  EXPECT_EQ(five.outputs()[0].shape, Dims({5, 4}));
}

TEST_F(ModelTest, ComputesWhatTheNetComputes) {
  Context context(Device::cpu);
  NetInput input = read_net_input(file(), TEST, {}, context.log());
  input.options.keep_blobs = true;
  Net net(context, input.net, input.options);
  const std::vector<float> values = numbers(2 * 3 * 9 * 9);
  net.set_input("data", values.data());
  net.forward(0);

  Model model = this->model({.keep_blobs = true});
  forward(model, values);
  for (const char* name : {"data", "conv", "pool", "fc", "prob"}) {
    EXPECT_EQ(model.values(name), to_floats(context, net.blob(name))) << name;
    EXPECT_EQ(model.blob(name).shape, net.blob(name).shape().dims()) << name;
  }
  Model fused = this->model();
  const std::vector<float> fast = forward(fused, values), exact = model.values("prob");
  for (size_t i = 0; i < exact.size(); ++i) EXPECT_NEAR(fast[i], exact[i], 1e-6);
}

TEST_F(ModelTest, AViewIsTheBlobItself) {
  Model model = this->model({.keep_blobs = true});
  const std::vector<float> first = forward(model, numbers(486));
  const std::span<const float> view = model.view("prob");
  EXPECT_EQ(std::vector<float>(view.begin(), view.end()), first);
  EXPECT_EQ(model.view("prob").data(), view.data());
  const std::vector<float> second = forward(model, numbers(486, 3));
  EXPECT_NE(first, second);
  const std::span<const float> after = model.view("prob");
  EXPECT_EQ(std::vector<float>(after.begin(), after.end()), second);
  expect_part(error_of([&] { model.view("conv"); }),
              "blob \"conv\" is not stored in row-major order: copy it with values()");
  EXPECT_EQ(model.values("conv").size(), 2u * 16 * 7 * 7);
}

TEST_F(ModelTest, SaysWhatDoesNotFit) {
  Model model = this->model();
  expect_part(error_of([&] { model.forward(); }), "no values were set for data");
  expect_part(error_of([&] { model.set_input("dada", numbers(486)); }),
              "net \"small\" has no input \"dada\" (did you mean \"data\"?)");
  expect_part(error_of([&] { model.set_input("conv", numbers(486)); }), "has no input \"conv\"");
  expect_part(error_of([&] { model.set_input("data", numbers(485)); }),
              "485 values were given, but its shape 2x3x9x9 has 486");
  forward(model, numbers(486));
  expect_part(error_of([&] { model.values("prop"); }), "did you mean \"prob\"?");
  expect_part(error_of([&] { model.values("pool"); }), "open the model with keep_blobs");
  expect_part(error_of([&] { model.parameter("cons"); }), "did you mean \"conv\"?");
  expect_part(error_of([&] { model.parameter("conv", 2); }), "has no parameter 2: it has 2");
  expect_part(error_of([&] { model.set_parameter("conv", 1, numbers(3)); }), "its shape 16 has 16");
  expect_part(error_of([&] { this->model({.precision = "fp12"}); }), "fp12");
  expect_part(error_of([&] { this->model({.phase = "test"}); }), "expected TEST or TRAIN");
  expect_part(error_of([&] { this->model({.weights = {"missing.caffemodel"}}); }), "missing");
  expect_part(error_of([&] { this->model({.weights_mode = "lax"}); }), "expected strict or match");
  expect_part(error_of([&] { Model(folder_.file("missing.prototxt")); }), "missing.prototxt");
  folder_.write("wrong.prototxt", "name: \"wrong\"\nlayer { name: \"a\" type: \"Relu\" }");
  expect_part(error_of([&] { Model(folder_.file("wrong.prototxt")); }), "wrong.prototxt:2:1: ");
  expect_part(error_of([&] { this->model({.device = ComputeDevice::gpu(99)}); }), "GPU 99");
  expect_part(error_of([&] { this->model({.device = ComputeDevice::gpu(-1)}); }), "GPU -1");
}

TEST_F(ModelTest, TakesAnotherShape) {
  Model model = this->model();
  const std::vector<float> before = forward(model, numbers(486));
  model.reshape("data", {6, 3, 9, 9});
  EXPECT_EQ(model.outputs()[0].shape, Dims({6, 4}));
  expect_part(error_of([&] { model.forward(); }), "no values were set for data");
  EXPECT_EQ(forward(model, numbers(3 * 486)).size(), 24u);
  model.reshape("data", {2, 3, 9, 9});
  EXPECT_EQ(forward(model, numbers(486)), before);
  EXPECT_NE(error_of([&] { model.reshape("data", {2, 3, 2, 2}); }), "");
  EXPECT_NE(error_of([&] { model.reshape("data", {2, 3, 8, 8}); }), "");  // fc has its weights
  expect_part(error_of([&] { model.reshape("prob", {2, 3, 9, 9}); }), "has no input \"prob\"");
  EXPECT_EQ(model.inputs()[0].shape, Dims({2, 3, 9, 9}));
  EXPECT_EQ(forward(model, numbers(486)), before);
}

TEST_F(ModelTest, ReshapesSeveralInputsAtOnce) {
  folder_.write("sum.prototxt", R"(
    layer { name: "in" type: "Input" top: "a" top: "b" input_param { shape { dim: 2 dim: 3 } shape { dim: 2 dim: 3 } } }
    layer { name: "sum" type: "Eltwise" bottom: "a" bottom: "b" top: "sum" })");
  Model model(folder_.file("sum.prototxt"));
  EXPECT_NE(error_of([&] { model.reshape("a", {1, 3}); }), "");
  model.reshape({{"a", {1, 3}}, {"b", {1, 3}}});
  model.set_input("a", std::vector<float>{1, 2, 3});
  model.set_input("b", std::vector<float>{4, 5, 6});
  model.forward();
  EXPECT_EQ(model.values("sum"), (std::vector<float>{5, 7, 9}));
  EXPECT_NE(error_of([&] { model.reshape({{"a", {1, 4}}, {"b", {1, 3}}}); }), "");
  EXPECT_EQ(model.inputs()[0].shape, Dims({1, 3}));
}

TEST_F(ModelTest, AFailedReshapeChangesNothing) {
  folder_.write("two.prototxt", R"(
    layer { name: "in" type: "Input" top: "a" top: "b" input_param { shape { dim: 2 dim: 3 } shape { dim: 2 dim: 3 } } }
    layer { name: "fc" type: "InnerProduct" bottom: "a" top: "fc" inner_product_param { num_output: 4 } }
    layer { name: "sum" type: "Reduction" bottom: "b" top: "sum" reduction_param { axis: 1 } })");
  Model model(folder_.file("two.prototxt"));
  EXPECT_NE(error_of([&] { model.reshape("a", {2, 5}); }), "");
  model.reshape("b", {3, 2});
  EXPECT_EQ(model.inputs()[0].shape, Dims({2, 3}));
  model.set_input("a", numbers(6));
  model.set_input("b", std::vector<float>{1, 2, 3, 4, 5, 6});
  model.forward();
  EXPECT_EQ(model.values("sum"), (std::vector<float>{3, 7, 11}));
}

TEST_F(ModelTest, ReadsOldInputsAndDataLayers) {
  folder_.write("old.prototxt", R"(
    name: "old" input: "x" input_dim: 2 input_dim: 3 input_dim: 1 input_dim: 1
    layer { name: "sum" type: "Reduction" bottom: "x" top: "sum" reduction_param { axis: 1 } })");
  Model old(folder_.file("old.prototxt"));
  ASSERT_EQ(old.inputs().size(), 1u);
  old.set_input("x", std::vector<float>{1, 2, 3, 4, 5, 6});
  old.forward();
  EXPECT_EQ(old.values("sum"), (std::vector<float>{6, 15}));

  folder_.write("dummy.prototxt", R"(
    layer { name: "x" type: "DummyData" top: "x"
      dummy_data_param { shape { dim: 2 dim: 3 } data_filler { type: "gaussian" } } }
    layer { name: "y" type: "Power" bottom: "x" top: "y" })");
  Model dummy(folder_.file("dummy.prototxt"), {.batch = 4});
  EXPECT_TRUE(dummy.inputs().empty());
  dummy.forward();
  const std::vector<float> first = dummy.values("y");
  EXPECT_EQ(first.size(), 12u);
  dummy.forward();
  EXPECT_NE(dummy.values("y"), first);
  expect_part(error_of([&] { dummy.set_input("x", first); }), "layers that read files");
}

// Images of two sizes: the net is planned anew for the second and comes back to the first plan.
TEST_F(ModelTest, InputsStayWhenImagesChangeSize) {
#ifndef CREMA_OPENCV
  GTEST_SKIP() << "built without OpenCV";
#endif
  std::string list;
  for (const int size : {4, 6, 4, 6}) {
    const std::string name = cat(size, ".png");
    const std::vector<uint8_t> grey(static_cast<size_t>(size * size),
                                    static_cast<uint8_t>(10 * size));
    folder_.write(name, png_of({size, size, 1, grey, ""}));
    list += cat(folder_.file(name), " 0\n");
  }
  folder_.write("list.txt", list);
  folder_.write("images.prototxt", cat(R"(
    layer { name: "images" type: "ImageData" top: "x" top: "label"
      image_data_param { batch_size: 1 is_color: false source: ")",
                                       folder_.file("list.txt"), R"(" } }
    layer { name: "unused" type: "Silence" bottom: "label" }
    layer { name: "in" type: "Input" top: "a" input_param { shape { dim: 1 dim: 3 } } }
    layer { name: "mean" type: "Pooling" bottom: "x" top: "mean" pooling_param { pool: AVE global_pooling: true } }
    layer { name: "y" type: "Power" bottom: "a" top: "y" power_param { scale: 2 } })"));
  for (const bool keep_blobs : {false, true}) {
    SCOPED_TRACE(keep_blobs);
    Model model(folder_.file("images.prototxt"), {.keep_blobs = keep_blobs});
    model.set_input("a", std::vector<float>{1, 2, 3});
    for (const float size : {4.f, 6.f}) {
      model.forward();
      EXPECT_EQ(model.values("mean"), std::vector<float>{10 * size});
      EXPECT_EQ(model.values("y"), (std::vector<float>{2, 4, 6})) << size;
    }
    model.set_input("a", std::vector<float>{4, 5, 6});
    for (const float size : {4.f, 6.f}) {
      model.forward();
      EXPECT_EQ(model.values("mean"), std::vector<float>{10 * size});
      EXPECT_EQ(model.values("y"), (std::vector<float>{8, 10, 12})) << size;
    }
  }
}

TEST_F(ModelTest, WeightsGoOutAndIn) {
  Model one = model(), other = model();
  const std::vector<ParameterInfo> all = one.parameters();
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[2].layer, "fc");
  EXPECT_EQ(all[2].index, 0);
  EXPECT_EQ(all[2].shape, Dims({4, 256}));
  one.set_parameter("fc", 0, numbers(4 * 256, -0.5f));
  one.set_parameter("conv", 0, numbers(16 * 27, -0.5f));
  EXPECT_EQ(one.parameter("fc"), numbers(4 * 256, -0.5f));
  const std::vector<float> input = numbers(486), wanted = forward(one, input);
  EXPECT_NE(forward(other, input), wanted);
  for (const ParameterInfo& p : all)
    other.set_parameter(p.layer, p.index, one.parameter(p.layer, p.index));
  EXPECT_EQ(forward(other, input), wanted);

  Context context(Device::cpu);
  context.seed = 7;
  const NetInput read = read_net_input(file(), TEST, {}, context.log());
  Net net(context, read.net, read.options);
  save_caffemodel(net, folder_.file("net.caffemodel"));
  save_hdf5(net, folder_.file("net.h5"));
  other.load_weights(folder_.file("net.caffemodel"));
  EXPECT_EQ(other.parameter("fc"), to_floats(context, net.parameters()[2].data));
  Model third = model({.weights = {folder_.file("net.h5")}});
  EXPECT_EQ(forward(third, input), forward(other, input));
}

TEST_F(ModelTest, ThreadsDoNotDisturbEachOther) {
  constexpr int kThreads = 4, kPasses = 10;
  std::vector<std::vector<float>> wanted, found(kThreads);
  std::vector<Model> models;  // made here, used elsewhere
  for (int i = 0; i < kThreads; ++i) {
    Model alone = model();
    wanted.push_back(forward(alone, numbers(486, static_cast<float>(i))));
    models.push_back(model());
  }
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (int pass = 0; pass < kPasses; ++pass) {
        Model own = model();
        Model& used = pass % 2 == 0 ? own : models[i];
        const std::vector<float> values = forward(used, numbers(486, static_cast<float>(i)));
        if (pass == 0) found[i] = values;
        if (values != found[i]) found[i].clear();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < kThreads; ++i) EXPECT_EQ(found[i], wanted[i]) << i;
}

TEST_F(ModelTest, TheLogGoesToItsCallback) {
  std::vector<std::string> lines;
  LogLevel highest = LogLevel::info;
  folder_.write("net.prototxt", cat(kNet, "\nlayers_that_are_not: 1"));
  EXPECT_NE(error_of([&] { model(); }), "");
  folder_.write("net.prototxt", kNet);
  const Model logged = model({.log = [&](LogLevel level, std::string_view line) {
    lines.emplace_back(line);
    highest = std::max(highest, level);
  }});
  EXPECT_EQ(highest, LogLevel::info);
  EXPECT_TRUE(std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
    return line.find("Creating Layer conv") != std::string::npos;
  }));
  EXPECT_TRUE(std::none_of(lines.begin(), lines.end(), [](const std::string& line) {
    return line.find('\n') != std::string::npos;
  }));
}

TEST_F(ModelTest, CanBeMoved) {
  Model first = model();
  const std::vector<float> wanted = forward(first, numbers(486));
  Model second = std::move(first);
  EXPECT_EQ(forward(second, numbers(486)), wanted);
  first = model({.batch = 1});
  std::swap(first, second);
  EXPECT_EQ(forward(first, numbers(486)), wanted);
  EXPECT_EQ(second.outputs()[0].shape[0], 1);
}

}  // namespace model_test
}  // namespace crema::tests
