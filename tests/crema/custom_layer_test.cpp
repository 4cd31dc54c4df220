// Checks layers of the program's own: they learn as Crema's do, can be shared, and say what is wrong.
#include <cmath>
#include <stdexcept>

#include "crema.h"
#include "support.h"

namespace crema::tests {
namespace custom_layer_test {

// y = w[c] * x + b[c], as Scale computes it. The text says how it misbehaves.
class Affine final : public CustomLayer {
 public:
  explicit Affine(const CustomLayerSettings& settings) : settings_(settings) {
    if (settings.text == "refuse") throw std::invalid_argument("I do not like \"refuse\"");
  }
  std::vector<Parameter> parameters(const std::vector<Shape>& bottoms) override {
    const int64_t channels = bottoms[0].at(1);
    std::vector<float> ones(static_cast<size_t>(channels) + (settings_.text == "long"), 1.0f);
    return {{{channels}, ones}, {.shape = {channels}}};
  }
  std::vector<Shape> tops(const std::vector<Shape>& bottoms) override {
    if (settings_.text == "two tops") return {bottoms[0], bottoms[0]};
    if (settings_.text == "negative") return {{-3}};
    return {bottoms[0]};
  }
  void forward(const Forward& pass) override {
    if (settings_.text == "fail") throw std::runtime_error("out of luck");
    const CustomInput &x = pass.bottoms[0], &w = pass.parameters[0], &b = pass.parameters[1];
    for (size_t i = 0; i < x.values.size(); ++i) {
      const size_t c = channel(x, i);
      pass.tops[0].values[i] = w.values[c] * x.values[i] + b.values[c];
    }
  }
  void backward(const Backward& pass) override {
    if (settings_.text == "no gradient") return CustomLayer::backward(pass);
    const CustomInput &x = pass.bottoms[0], &dy = pass.top_gradients[0], &w = pass.parameters[0];
    for (size_t i = 0; i < x.values.size(); ++i) {
      const size_t c = channel(x, i);
      if (!pass.bottom_gradients[0].values.empty())
        pass.bottom_gradients[0].values[i] = dy.values[i] * w.values[c];
      pass.parameter_gradients[0].values[c] += dy.values[i] * x.values[i];
      pass.parameter_gradients[1].values[c] += dy.values[i];
    }
  }

 private:
  static size_t channel(const CustomInput& x, size_t i) {
    const auto channels = static_cast<size_t>(x.shape[1]);
    return i / (x.values.size() / static_cast<size_t>(x.shape[0]) / channels) % channels;
  }
  CustomLayerSettings settings_;
};

// Half of the mean of squared differences over the samples, as EuclideanLoss.
class OwnLoss final : public CustomLayer {
  std::vector<Shape> tops(const std::vector<Shape>&) override { return {{}}; }
  void forward(const Forward& pass) override {
    double sum = 0;
    for (size_t i = 0; i < pass.bottoms[0].values.size(); ++i)
      sum += std::pow(pass.bottoms[0].values[i] - pass.bottoms[1].values[i], 2);
    pass.tops[0].values[0] = static_cast<float>(sum / samples(pass.bottoms[0]) / 2);
  }
  void backward(const Backward& pass) override {
    const CustomInput& x = pass.bottoms[0];
    const float factor = pass.top_gradients[0].values[0] / samples(x);
    for (size_t i = 0; i < x.values.size(); ++i)
      pass.bottom_gradients[0].values[i] = factor * (x.values[i] - pass.bottoms[1].values[i]);
  }
  bool differentiable(size_t bottom) const override { return bottom == 0; }
  bool is_loss() const override { return true; }
  static float samples(const CustomInput& x) { return static_cast<float>(x.shape[0]); }
};

class CustomLayers : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    register_layer("Affine",
                   [](const auto& settings) { return std::make_unique<Affine>(settings); });
    register_layer("OwnLoss", [](const auto&) { return std::make_unique<OwnLoss>(); });
    register_layer("Nothing", [](const auto&) { return nullptr; });
  }
  // A layer of the text between convolutions, which a CPU stores channels-last, and a loss.
  std::string solver(const std::string& layer, const std::string& loss) const {
    folder_.write("solver.prototxt", cat(R"(
      train_net_param {
        layer { name: "data" type: "DummyData" top: "x" top: "y" dummy_data_param {
          shape { dim: 4 dim: 3 dim: 8 dim: 8 } shape { dim: 4 dim: 5 dim: 4 dim: 4 }
          data_filler { type: "gaussian" } data_filler { type: "uniform" } } }
        layer { name: "conv1" type: "Convolution" bottom: "x" top: "conv1"
          convolution_param { num_output: 16 kernel_size: 3 weight_filler { type: "xavier" } } }
        layer { name: "own" bottom: "conv1" top: "own" )",
                                         layer, R"( }
        layer { name: "conv2" type: "Convolution" bottom: "own" top: "conv2"
          convolution_param { num_output: 5 kernel_size: 3 weight_filler { type: "xavier" } } }
        layer { name: "loss" bottom: "conv2" bottom: "y" top: "loss" type: ")",
                                         loss, R"(" }
      }
      base_lr: 0.001 momentum: 0.9 lr_policy: "fixed" random_seed: 3 iter_size: 2
      snapshot_prefix: ")",
                                         folder_.file("own"), "\""));
    return folder_.file("solver.prototxt");
  }
  std::string problem_of(const std::string& text) const {
    return error_of([&] {
      Trainer(
          solver(cat("type: \"Affine\" custom_param { text: \"", text, "\" }"), "EuclideanLoss"))
          .step();
    });
  }

  Folder folder_;
};

TEST_F(CustomLayers, LearnAsCremasOwnDo) {
  std::vector<ComputeDevice> devices = {ComputeDevice::cpu()};
  if (usable_gpus() > 0) devices.push_back(ComputeDevice::gpu());
  for (const ComputeDevice& device : devices) {
    const TrainerOptions options{.device = device, .precision = "fp32"};
    Trainer crema(solver("type: \"Scale\" scale_param { bias_term: true }", "EuclideanLoss"),
                  options);
    crema.step(10);
    Trainer custom(solver("type: \"Affine\"", "OwnLoss"), options);
    custom.step(10);
    EXPECT_NEAR(custom.loss(), crema.loss(), 1e-5);
    ASSERT_EQ(custom.parameters().size(), crema.parameters().size());
    for (const ParameterInfo& p : crema.parameters()) {
      const std::vector<float> wanted = crema.parameter(p.layer, p.index),
                               found = custom.parameter(p.layer, p.index);
      ASSERT_EQ(found.size(), wanted.size());
      for (size_t i = 0; i < found.size(); ++i)
        ASSERT_NEAR(found[i], wanted[i], 1e-5) << p.layer << " " << p.index << " " << i;
    }
  }
}

TEST_F(CustomLayers, AreInWeightsAndShared) {
  Trainer trainer(solver("type: \"Affine\"", "OwnLoss"));
  trainer.step(3);
  const std::string net = R"(
    layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 2 dim: 16 dim: 3 } } }
    layer { name: "own" type: "Affine" bottom: "x" top: "y" })";
  Model model = Model::from_text(net, {.weights = {trainer.snapshot().weights}});
  Model other = model.shared();
  EXPECT_EQ(model.parameter("own", 1), trainer.parameter("own", 1));
  const std::vector<float> input(2 * 16 * 3, 0.5f);
  for (Model* one : {&model, &other}) {
    one->set_input("x", input);
    one->forward();
    const std::vector<float> y = one->values("y");
    for (size_t i = 0; i < y.size(); ++i)
      EXPECT_FLOAT_EQ(y[i], 0.5f * model.parameter("own", 0)[i / 3 % 16] +
                                model.parameter("own", 1)[i / 3 % 16]);
  }
}

// As in Caffe, where a loss needs no top.
TEST_F(CustomLayers, LossesNeedNoTop) {
  std::string text = read_file(solver("type: \"Affine\"", "OwnLoss"));
  const std::string top = "top: \"loss\"";
  text.erase(text.find(top), top.size());
  folder_.write("unnamed.prototxt", text);
  Trainer named(solver("type: \"Affine\"", "OwnLoss")), unnamed(folder_.file("unnamed.prototxt"));
  named.step(2);
  unnamed.step(2);
  EXPECT_EQ(unnamed.loss(), named.loss());
}

TEST_F(CustomLayers, SayWhatIsWrong) {
  const std::string place = cat(folder_.file("solver.prototxt"), ":");
  for (const auto& [text, part] : {
           std::pair("refuse", "layer \"own\": I do not like \"refuse\""),
           std::pair("fail", "layer \"own\": out of luck"),
           std::pair("long", "blob 0 has 17 first values; its shape 16 needs 16"),
           std::pair("two tops", "has 2 tops for these bottoms, but the file names 1"),
           std::pair("negative", "gives top 0 an extent of -3"),
           std::pair("no gradient", "it has no gradient"),
       }) {
    SCOPED_TRACE(text);
    expect_part(problem_of(text), part);
    expect_part(problem_of(text), place);
  }
  const auto maker = [](const CustomLayerSettings& settings) {
    return std::make_unique<Affine>(settings);
  };
  expect_part(error_of([&] { register_layer("ReLU", maker); }), "ReLU is one of Crema's");
  expect_part(error_of([&] { register_layer("Affine", maker); }), "registered already");
  expect_part(error_of([&] { register_layer("", maker); }), "needs the name of a type");
  expect_part(error_of([&] { register_layer("Other", nullptr); }), "and its maker");
  expect_part(error_of([&] {
                Model::from_text(
                    "layer { name: \"x\" type: \"Input\" top: \"x\" "
                    "input_param { shape { dim: 1 } } }\n"
                    "layer { name: \"n\" type: \"Nothing\" bottom: \"x\" top: \"y\" }");
              }),
              "returned no layer");
}

}  // namespace custom_layer_test
}  // namespace crema::tests
