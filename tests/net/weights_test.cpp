// Weights: what Caffe wrote is read, what we write is what Caffe would have written, and what does
// not fit is said.
#include "net/weights/weights.h"

#include "data/databases/hdf5_file.h"
#include "data/databases/hdf5_writer.h"
#include "net/filter.h"
#include "net/prototxt/prototxt.h"
#include "support.h"

namespace crema::tests {
namespace weights_test {

const std::string kGoldens = std::string(CREMA_TEST_DATA) + "/goldens";

class Weights : public testing::Test {
 protected:
  Weights() : context_(Device::cpu) { context_.set_log(log_); }

  std::string file(const std::string& name) const { return folder_.file(name); }

  std::unique_ptr<Net> net_of(const NetFile& file, Phase phase = TRAIN) {
    NetOptions options;
    options.state = net_state(phase, file.net, {});
    options.folder = folder_of(file.path);
    return std::make_unique<Net>(context_, file.net, options);
  }
  // A net of fully connected layers "NAME:OUTPUTS" one after another.
  std::unique_ptr<Net> chain(const std::vector<std::string>& layers,
                             const std::string& name = "chain") {
    std::string text =
        cat("name: \"", name,
            "\" layer { name: \"x\" type: \"Input\" top: \"x\" input_param { shape { dim: 2 "
            "dim: 5 } } }");
    std::string bottom = "x";
    for (const std::string& layer : layers) {
      const std::string top = layer.substr(0, layer.find(':'));
      text += cat(
          " layer { name: \"", top, "\" type: \"InnerProduct\" bottom: \"", bottom, "\" top: \"",
          top, "\" inner_product_param { num_output: ", layer.substr(layer.find(':') + 1),
          " weight_filler { type: \"gaussian\" std: 1 } bias_filler { type: \"uniform\" } } }");
      bottom = top;
    }
    return net_of(parse_net_text(text, name));
  }
  std::vector<std::vector<float>> values(Net& net) {
    std::vector<std::vector<float>> all;
    for (const Parameter& parameter : net.parameters())
      all.push_back(to_floats(context_, parameter.data));
    return all;
  }

  Context context_;
  Lines log_;
  Folder folder_;
};

TEST_F(Weights, CaffesFileComesBackByteForByte) {
  for (const char* name : {"resume_adam_mlp", "resume_sgd_conv_rows37"}) {
    const std::string folder = kGoldens + "/train/" + name;
    const std::string original = folder + "/mid_iter_15.caffemodel";
    const auto net = net_of(read_net_file(folder + "/net.prototxt"));
    load_weights(*net, original);
    save_caffemodel(*net, file("copy.caffemodel"));
    EXPECT_EQ(read_file(file("copy.caffemodel")), read_file(original)) << name;
  }
}

TEST_F(Weights, BothContainersOfCaffeHoldTheSame) {
  const std::string folder = kGoldens + "/train/resume_sgd_conv_rows37";
  const NetFile description = read_net_file(folder + "/net.prototxt");
  const auto a = net_of(description), b = net_of(description);
  load_weights(*a, folder + "/mid_iter_15.caffemodel");
  load_weights(*b, folder + "/mid_iter_15.caffemodel.h5");
  EXPECT_EQ(values(*a), values(*b));
}

TEST_F(Weights, OldGenerations) {
  const auto net = net_of(read_net_file(kGoldens + "/legacy/v1_deploy.prototxt"), TEST);
  load_weights(*net, kGoldens + "/legacy/v2.caffemodel");
  const std::vector<std::vector<float>> wanted = values(*net);
  for (const char* name :
       {"v2.caffemodel.h5", "v1.caffemodel", "v0.caffemodel", "v1.upgraded.caffemodel"}) {
    const auto other = net_of(read_net_file(kGoldens + "/legacy/v1_deploy.prototxt"), TEST);
    load_weights(*other, kGoldens + "/legacy/" + name);
    EXPECT_EQ(values(*other), wanted) << name;
  }
}

TEST_F(Weights, RoundTrips) {
  const auto net = chain({"a:4", "b:3"});
  save_caffemodel(*net, file("x.caffemodel"));
  save_hdf5(*net, file("x.h5"));
  for (const char* name : {"x.caffemodel", "x.h5"}) {
    context_.seed = 99;
    const auto other = chain({"a:4", "b:3"});
    EXPECT_NE(values(*other), values(*net));
    const LoadReport report = load_weights(*other, file(name));
    EXPECT_EQ(values(*other), values(*net)) << name;
    EXPECT_EQ(report.count(LoadedLayer::Outcome::loaded), 2);
    EXPECT_TRUE(report.ignored.empty());
  }
}

TEST_F(Weights, GradientsGoInOnRequest) {
  const auto net = chain({"a:4"});
  save_caffemodel(*net, file("x.caffemodel"), true);
  NetParameter stored;
  ASSERT_TRUE(stored.ParseFromString(read_file(file("x.caffemodel"))));
  EXPECT_EQ(stored.layer(1).blobs(0).diff_size(), 20);
  save_hdf5(*net, file("x.h5"), true);
  EXPECT_EQ(Hdf5File(file("x.h5")).shape("diff/a/0"), (Shape{4, 5}));
}

TEST_F(Weights, LayersThatTheNetHasNotAreIgnored) {
  save_caffemodel(*chain({"a:4", "fc8:3"}), file("x.caffemodel"));
  const auto net = chain({"a:4", "fc8_new:2"});
  const LoadReport report = load_weights(*net, file("x.caffemodel"));
  EXPECT_EQ(report.ignored, std::vector<std::string>{"fc8"});
  EXPECT_EQ(report.count(LoadedLayer::Outcome::missing), 1);
  EXPECT_TRUE(log_.has("Ignoring source layer fc8"));
  EXPECT_TRUE(log_.has("Loaded a: 4x5, 4"));
  EXPECT_TRUE(log_.has("Not in the file: fc8_new (keeps its initial values)"));
}

TEST_F(Weights, AnotherShapeIsRefusedOrSkipped) {
  for (const bool hdf5 : {false, true}) {
    const std::string path = file(hdf5 ? "x.h5" : "x.caffemodel");
    context_.seed = 1;
    (hdf5 ? save_hdf5 : save_caffemodel)(*chain({"a:4", "fc8:3"}), path, false);
    context_.seed = 99;
    const auto net = chain({"a:4", "fc8:2"});
    const std::vector<std::vector<float>> before = values(*net);
    const std::string message = error_of([&] { load_weights(*net, path); });
    expect_part(message, "layer \"fc8\": parameter 0 is 3x4 in the file, 2x4 in the net");
    expect_part(message, "-weights_mode match");
    const LoadReport report = load_weights(*net, path, {WeightsMode::match});
    EXPECT_EQ(report.count(LoadedLayer::Outcome::skipped), 1);
    EXPECT_NE(values(*net)[0], before[0]);
    EXPECT_EQ(values(*net)[2], before[2]);
  }
}

TEST_F(Weights, AFullyConnectedLayerBecomesAConvolution) {
  const auto source = chain({"a:4"});
  save_caffemodel(*source, file("x.caffemodel"));
  const auto net =
      net_of(parse_net_text("layer { name: \"x\" type: \"Input\" top: \"x\" input_param { shape { "
                            "dim: 1 dim: 1 dim: 9 dim: 9 } } }"
                            "layer { name: \"a\" type: \"Convolution\" bottom: \"x\" top: \"a\" "
                            "convolution_param { num_output: 4 kernel_h: 1 "
                            "kernel_w: 5 } }",
                            "conv"));
  expect_part(error_of([&] { load_weights(*net, file("x.caffemodel")); }),
              "parameter 0 is 4x5 in the file, 4x1x1x5 in the net");
  const LoadReport report = load_weights(*net, file("x.caffemodel"), {WeightsMode::match});
  EXPECT_EQ(report.count(LoadedLayer::Outcome::reshaped), 1);
  EXPECT_EQ(values(*net), values(*source));
}

TEST_F(Weights, NothingMatches) {
  save_caffemodel(*chain({"a:4", "b:3"}), file("x.caffemodel"));
  const auto net = chain({"c:4"});
  const std::string message = error_of([&] { load_weights(*net, file("x.caffemodel")); });
  expect_part(message, "not one blob");
  expect_part(message, "the file has a, b; the net's layers with parameters are c");
}

TEST_F(Weights, SlashesInNamesAreGroups) {
  const std::vector<std::string> layers = {"conv1/7x7_s2:4", "inception_3a/1x1:3",
                                           "inception_3a/5x5_reduce:2"};
  const auto net = chain(layers);
  save_hdf5(*net, file("x.h5"));
  EXPECT_TRUE(Hdf5File(file("x.h5")).has("data/inception_3a/1x1/0"));
  context_.seed = 99;
  const auto other = chain(layers);
  const LoadReport report = load_weights(*other, file("x.h5"));
  EXPECT_EQ(report.count(LoadedLayer::Outcome::loaded), 3);
  EXPECT_EQ(values(*other), values(*net));
}

TEST_F(Weights, NamesThatCollideInHdf5) {
  expect_part(error_of([&] {
                save_hdf5(*chain({"a:4", "a/0:3"}), file("x.h5"));
              }),
              "would be stored where parameter \"a/0\"");
  expect_part(error_of([&] {
                save_hdf5(*chain({"a/b:4", "a//b:3"}), file("x.h5"));
              }),
              "two layers would be stored as \"a/b\"");
  EXPECT_FALSE(file_exists(file("x.h5")));
}

TEST_F(Weights, SharedParametersAreWrittenAsCaffeDoes) {
  const std::string folder = kGoldens + "/train/shared_chain";
  const NetFile description = read_net_file(folder + "/net.prototxt");
  const auto net = net_of(description);
  load_weights(*net, folder + "/init.caffemodel");
  save_caffemodel(*net, file("x.caffemodel"));
  EXPECT_EQ(read_file(file("x.caffemodel")), read_file(folder + "/init.caffemodel"));
  save_hdf5(*net, file("x.h5"));
  context_.seed = 99;
  const auto other = net_of(description);
  load_weights(*other, file("x.h5"));
  EXPECT_EQ(values(*other), values(*net));
}

TEST_F(Weights, WhatIsNoWeightsFile) {
  const auto net = chain({"a:4"});
  expect_part(error_of([&] { load_weights(*net, file("missing.caffemodel")); }), "cannot open");
  folder_.write("cut.h5", "\x89HDF\r\n\x1a\n");
  expect_part(error_of([&] { load_weights(*net, file("cut.h5")); }), "damaged or cut short");
  Hdf5Writer other(file("other.h5"));
  other.group("images");
  other.commit();
  expect_part(error_of([&] { load_weights(*net, file("other.h5")); }), "no group \"data\"");
}

}  // namespace weights_test
}  // namespace crema::tests
