// Model in programs that embed it: nets and weights in memory, inputs written in place, parts of a
// pass, gradients.
#include <thread>

#include "crema.h"
#include "support.h"

namespace crema::tests {
namespace embedded_model_test {

using Values = std::vector<float>;

// In-place layers, a blob with two readers, and a shape that the CPU stores channels-last.
const std::string kText = R"(
  name: "branches"
  layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 2 dim: 3 dim: 6 dim: 5 } } }
  layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
    convolution_param { num_output: 8 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
  layer { name: "scale1" type: "Scale" bottom: "conv1" top: "conv1" scale_param { filler { value: 2 } } }
  layer { name: "tanh1" type: "TanH" bottom: "conv1" top: "conv1" }
  layer { name: "conv2" type: "Convolution" bottom: "conv1" top: "conv2"
    convolution_param { num_output: 8 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
  layer { name: "sum" type: "Eltwise" bottom: "conv1" bottom: "conv2" top: "sum" }
  layer { name: "fc" type: "InnerProduct" bottom: "sum" top: "fc"
    inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
  layer { name: "prob" type: "Softmax" bottom: "fc" top: "prob" }
)";

Values numbers(size_t count, size_t from = 0) {
  Values values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = static_cast<float>(((i + from) * 37) % 89) / 89 - 0.4f;
  return values;
}

constexpr size_t kInputs = 2 * 3 * 6 * 5;

// The weights of a net as the content of a file.
std::string weights_of(const Folder& folder, const std::string& text, int seed) {
  folder.write("solver.prototxt",
               cat("train_net_param {", text,
                   "layer { name: \"loss\" type: \"EuclideanLoss\" bottom: \"fc\" bottom: \"fc\" "
                   "top: \"loss\" } }\nbase_lr: 0.1 lr_policy: \"fixed\" random_seed: ",
                   seed, " snapshot_prefix: \"", folder.file("trained"), "\""));
  Trainer trainer(folder.file("solver.prototxt"));
  return read_file(trainer.snapshot().weights);
}

class EmbeddedModel : public testing::Test {
 protected:
  Folder folder_;
};

TEST_F(EmbeddedModel, OpensANetAndWeightsInMemory) {
  const std::string weights = weights_of(folder_, kText, 5);
  folder_.write("net.prototxt", kText);
  folder_.write("net.caffemodel", weights);
  Model file(folder_.file("net.prototxt"), {.weights = {folder_.file("net.caffemodel")}});
  Model memory = Model::from_text(kText, {.weights_contents = {weights}});
  EXPECT_EQ(memory.name(), "branches");
  EXPECT_EQ(memory.parameter("conv2"), file.parameter("conv2"));
  Model later = Model::from_text(kText);
  EXPECT_NE(later.parameter("conv2"), file.parameter("conv2"));
  later.load_weights_content(weights);
  for (Model* model : {&file, &memory, &later}) {
    model->set_input("data", numbers(kInputs));
    model->forward();
  }
  EXPECT_EQ(memory.values("prob"), file.values("prob"));
  EXPECT_EQ(later.values("prob"), file.values("prob"));
  // A trained net's text is deployed like its file.
  const std::string labelled =
      "layer { name: \"data\" type: \"DummyData\" top: \"data\" top: \"label\" dummy_data_param { "
      "shape { dim: 2 dim: 3 } shape { dim: 2 } } } layer { name: \"fc\" type: \"InnerProduct\" "
      "bottom: \"data\" top: \"fc\" inner_product_param { num_output: 4 } } layer { name: \"loss\" "
      "type: \"SoftmaxWithLoss\" bottom: \"fc\" bottom: \"label\" top: \"loss\" }";
  EXPECT_EQ(Model::from_text(labelled, {.deploy = true}).inputs()[0].name, "data");
}

TEST_F(EmbeddedModel, NamesWhatIsInMemoryInMessages) {
  expect_part(error_of([] { Model::from_text("layer { name: \"x\" typ: \"ReLU\" }", {}, "mine"); }),
              "mine:1:19: ");
  expect_part(error_of([] { Model::from_text(" \n"); }), "net: is empty");
  const std::string weights = weights_of(folder_, kText, 5);
  expect_part(error_of([&] {
                Model::from_text(kText,
                                 {.weights_contents = {std::string_view(weights).substr(0, 100)}});
              }),
              "net's weights: ");
  Model model = Model::from_text(kText);
  expect_part(error_of([&] { model.load_weights_content("", "blob.bin"); }), "blob.bin: is empty");
  expect_part(error_of([&] { model.load_weights_content("\x89HDF\r\n\x1a\n", "w"); }),
              "w: HDF5 is read from files only");
}

TEST_F(EmbeddedModel, ReadsInputsThatAreWrittenInPlace) {
  Model copied = Model::from_text(kText), in_place = Model::from_text(kText);
  const std::span<float> memory = in_place.input("data");
  ASSERT_EQ(memory.size(), kInputs);
  EXPECT_EQ(memory[17], 0);
  EXPECT_EQ(in_place.input("data").data(), memory.data());
  for (const size_t from : {0u, 3u, 8u}) {
    const Values values = numbers(kInputs, from);
    std::copy(values.begin(), values.end(), memory.begin());
    in_place.forward();
    copied.set_input("data", values);
    copied.forward();
    EXPECT_EQ(in_place.values("prob"), copied.values("prob"));
  }
  // It begins with what was set, which replaces it.
  in_place.set_input("data", numbers(kInputs, 1));
  const std::span<float> again = in_place.input("data");
  EXPECT_EQ(Values(again.begin(), again.end()), numbers(kInputs, 1));
  in_place.reshape("data", {1, 3, 6, 5});
  expect_part(error_of([&] { in_place.forward(); }), "no values were set for data");
  EXPECT_EQ(in_place.input("data").size(), kInputs / 2);
  in_place.forward();
  expect_part(error_of([&] { in_place.input("date"); }), "has no input \"date\"");
}

TEST_F(EmbeddedModel, CopiesValuesIntoTheCallersMemory) {
  Model model = Model::from_text(kText);
  model.set_input("data", numbers(kInputs));
  model.forward();
  Values values(8), few(7);
  model.values("prob", values);
  EXPECT_EQ(values, model.values("prob"));
  expect_part(error_of([&] { model.values("prob", few); }), "there is memory for 7");
}

TEST_F(EmbeddedModel, RunsUpToALayer) {
  Model whole = Model::from_text(kText, {.keep_blobs = true});
  Model part = Model::from_text(kText, {.keep_blobs = true});
  for (Model* model : {&whole, &part}) model->set_input("data", numbers(kInputs));
  whole.forward();
  part.forward_to("conv2");
  EXPECT_EQ(part.values("conv2"), whole.values("conv2"));
  EXPECT_EQ(part.values("conv1"), whole.values("conv1"));
  expect_part(error_of([&] { part.values("prob"); }),
              "blob \"prob\" has no content: the last pass ended at layer \"conv2\"");
  expect_part(error_of([&] { part.best(1); }), "the last pass ended at layer \"conv2\"");
  // Between in-place layers a blob is what those before have written: before the TanH.
  part.forward_to("scale1");
  Values bent = part.values("conv1");
  for (float& value : bent) value = std::tanh(value);
  const Values wanted = whole.values("conv1");
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(bent[i], wanted[i], 1e-6f);
  part.forward();
  EXPECT_EQ(part.values("prob"), whole.values("prob"));
  // The name of a blob that several layers write means the last of them.
  part.forward_to("sum");
  EXPECT_EQ(part.values("sum"), whole.values("sum"));
  expect_part(error_of([&] { part.forward_to("conv3"); }), "no layer and no blob \"conv3\"");
  Model fused = Model::from_text(kText);
  expect_part(error_of([&] { fused.forward_to("sum"); }), "opened with keep_blobs");
}

// Central differences of sum(gradient * blob) for some inputs.
void expect_gradients(Model& model, const std::string& blob, const Values& gradient) {
  Values input = numbers(kInputs, 2);
  const auto sum_of = [&] {
    model.set_input("data", input);
    model.forward();
    double sum = 0;
    const Values values = model.values(blob);
    for (size_t i = 0; i < values.size(); ++i) sum += static_cast<double>(values[i]) * gradient[i];
    return sum;
  };
  for (size_t i = 0; i < kInputs; i += 7) {
    const float at = input[i], step = 0.01f;
    input[i] = at + step;
    const double above = sum_of();
    input[i] = at - step;
    const double below = sum_of();
    input[i] = at;
    sum_of();
    model.backward(blob, gradient);
    EXPECT_NEAR(model.gradient("data")[i], (above - below) / (2 * step), 2e-3) << blob << " " << i;
  }
}

TEST_F(EmbeddedModel, ComputesGradientsOfInputs) {
  Model model = Model::from_text(kText, {.gradients = true});
  expect_gradients(model, "prob", numbers(8, 4));
  expect_gradients(model, "fc", numbers(8, 4));
  expect_gradients(model, "sum", numbers(2 * 8 * 30, 4));
  // conv1 has two readers, whose gradients do not count here.
  expect_gradients(model, "conv1", numbers(2 * 8 * 30, 5));
  Model other = model.shared();
  std::thread([&] { expect_gradients(other, "fc", numbers(8, 3)); }).join();
}

TEST_F(EmbeddedModel, RefusesGradientsThatItDoesNotHave) {
  Model plain = Model::from_text(kText), model = Model::from_text(kText, {.gradients = true});
  const Values gradient(8, 1.f);
  for (Model* each : {&plain, &model}) each->set_input("data", numbers(kInputs));
  expect_part(error_of([&] { model.backward("prob", gradient); }), "call forward() first");
  plain.forward();
  expect_part(error_of([&] { plain.backward("prob", gradient); }), "opened with gradients");
  expect_part(error_of([&] { plain.gradient("data"); }), "opened with gradients");
  model.forward();
  expect_part(error_of([&] { model.backward("prob", Values(3)); }), "has 3 values");
  expect_part(error_of([&] { model.backward("porb", gradient); }), "porb");
  model.forward_to("fc");
  model.backward("fc", gradient);
  expect_part(error_of([&] { model.backward("prob", gradient); }),
              "the last pass ended at layer \"fc\"");
}

TEST_F(EmbeddedModel, TakesPicturesFromMemory) {
#ifndef CREMA_OPENCV
  GTEST_SKIP() << "built without OpenCV";
#endif
  const std::string text =
      "layer { name: \"data\" type: \"Input\" top: \"data\" input_param { shape { dim: 2 dim: 1 "
      "dim: 2 dim: 3 } } } layer { name: \"same\" type: \"Power\" bottom: \"data\" top: \"same\" }";
  const std::string picture = "P5\n3 2\n255\n" + std::string("\1\2\3\4\5\6");
  folder_.write("picture.pgm", picture);
  Model model = Model::from_text(text);
  model.set_picture_content("data", picture, 0);
  model.set_picture("data", folder_.file("picture.pgm"), 1);
  model.forward();
  EXPECT_EQ(model.values("same"), Values({1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6}));
  expect_part(error_of([&] { model.set_picture_content("data", "no picture"); }), "");
}

}  // namespace embedded_model_test
}  // namespace crema::tests
