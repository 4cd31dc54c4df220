// Weights: files from Caffe are read, ours are as Caffe would have written them, and mismatches are told.
#include "net/weights/weights.h"

#include "data/databases/hdf5/hdf5_file.h"
#include "data/databases/hdf5/hdf5_writer.h"
#include "net/graph/filter.h"
#include "net/prototxt/prototxt.h"
#include "support.h"

namespace crema::tests {
namespace weights_test {

const std::string kGoldens = std::string(CREMA_TEST_DATA) + "/goldens";

class Weights : public testing::Test {
 protected:
  Weights() : context_(Device::cpu) { context_.set_log(log_); }

  std::string file(const std::string& name) const { return folder_.file(name); }

  std::unique_ptr<Net> net_of(const NetFile& file, Phase phase = TRAIN, NetOptions options = {}) {
    options.state = net_state(phase, file.net, {});
    options.folder = folder_of(file.path);
    return std::make_unique<Net>(context_, file.net, options);
  }
  // A net of fully connected layers "NAME:OUTPUTS" one after another.
  std::unique_ptr<Net> chain(const std::vector<std::string>& layers,
                             const std::string& name = "chain", const NetOptions& options = {}) {
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
    return net_of(parse_net_text(text, name), TRAIN, options);
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

// Then loading fills the others, with the values that they would have had.
TEST_F(Weights, AreNotFilledIfTheyAreLoadedNext) {
  save_caffemodel(*chain({"a:7", "b:3"}), file("w.caffemodel"));
  const std::vector<std::string> layers{"a:7", "b:3", "c:4"};
  NetOptions options;
  options.weights_follow = true;
  const auto net = chain(layers), lazy = chain(layers, "chain", options);
  EXPECT_NE(values(*lazy), values(*net));
  load_weights(*net, file("w.caffemodel"));
  load_weights(*lazy, file("w.caffemodel"));
  EXPECT_EQ(values(*lazy), values(*net));
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

// A layer of the file "l" and one of the net, both after the same input of 2x4x3x3 or 2x36.
struct Pair {
  const char *what, *stored, *wanted;
  const char*
      outcome;  // in WeightsMode::match: the values of the net's parameters that are the file's
  const char* error;  // in WeightsMode::strict
};

const Pair kPairs[] = {
    {"a BatchNorm with scale and bias into one without",
     "BatchNorm batch_norm_param { scale_bias: true }", "BatchNorm", "---",
     "the file has 5 blobs, the net 3; the file's BatchNorm has scale and bias of its own"},
    {"the other way round", "BatchNorm", "BatchNorm batch_norm_param { bias_filler { value: 1 } }",
     "-----",
     "the file has 3 blobs, the net 5; in the file scale and bias belong to a Scale layer"},
    {"a Scale without bias", "Scale", "Scale scale_param { bias_term: true }", "--",
     "the file has 1 blobs, the net 2; to train this layer from its initial values"},
    {"weights without bias",
     "Convolution convolution_param { num_output: 2 kernel_size: 1 bias_term: false }",
     "Convolution convolution_param { num_output: 2 kernel_size: 1 }", "+-",
     "the file has 1 blobs, the net 2; -weights_mode match loads what both have"},
    {"weights with a bias too many",
     "Convolution convolution_param { num_output: 2 kernel_size: 1 }",
     "Convolution convolution_param { num_output: 2 kernel_size: 1 bias_term: false }", "+",
     "the file has 2 blobs, the net 1; -weights_mode match loads what both have"},
    {"a bias alone fits", "Convolution convolution_param { num_output: 2 kernel_size: 1 }",
     "Convolution convolution_param { num_output: 2 kernel_size: 3 }", "--",
     "parameter 0 is 2x4x1x1 in the file, 2x4x3x3 in the net; to train this layer from its "
     "initial"},
    {"as many values of other filters",
     "Convolution convolution_param { num_output: 2 kernel_size: 2 }",
     "Convolution convolution_param { num_output: 2 kernel_h: 4 kernel_w: 1 pad: 1 }", "--",
     "parameter 0 is 2x4x2x2 in the file, 2x4x4x1 in the net; to train this layer"},
    {"fully connected into a convolution", "InnerProduct inner_product_param { num_output: 2 }",
     "Convolution convolution_param { num_output: 2 kernel_size: 3 }", "++",
     "parameter 0 is 2x36 in the file, 2x4x3x3 in the net; the values are the same in another "
     "shape: -weights_mode match loads them reshaped, and crema surgery"},
    {"a convolution into fully connected",
     "Convolution convolution_param { num_output: 2 kernel_size: 3 }",
     "InnerProduct inner_product_param { num_output: 2 }", "++",
     "parameter 0 is 2x4x3x3 in the file, 2x36 in the net; the values are the same in another"},
    {"transposed", "Convolution convolution_param { num_output: 2 kernel_size: 3 }",
     "InnerProduct inner_product_param { num_output: 2 transpose: true }", "--",
     "parameter 0 is 2x4x3x3 in the file, 36x2 in the net; to train this layer"},
    {"a slope per channel", "PReLU", "PReLU prelu_param { channel_shared: true }", "-",
     "parameter 0 is 4 in the file"},
};

TEST_F(Weights, OfALayerLoadAllOrNone) {
  const auto layer = [](const std::string& type) {
    const size_t end = std::min(type.find(' '), type.size());
    return parse_net_text(
        cat("layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: [2, "
            "4, 3, 3] } } } layer { name: 'ok' type: 'PReLU' bottom: 'x' top: 'ok' } ",
            "layer { name: 'l' type: '", type.substr(0, end), "' bottom: 'ok' top: 'l' ",
            type.substr(end), " }"),
        "net");
  };
  const auto fill = [&](Net& net, float first) {
    for (const Parameter& parameter : net.parameters()) {
      std::vector<float> filled(parameter.shape.count());
      for (float& value : filled) value = first++;
      from_floats(context_, filled.data(), parameter.data);
    }
  };
  for (const Pair& pair : kPairs) {
    const auto source = net_of(layer(pair.stored)), net = net_of(layer(pair.wanted));
    fill(*source, 1);
    fill(*net, -10000);
    save_caffemodel(*source, file("x.caffemodel"));
    expect_part(error_of([&] { load_weights(*net, file("x.caffemodel")); }),
                cat("layer \"l\": ", pair.error));
    fill(*net, -10000);
    load_weights(*net, file("x.caffemodel"), {WeightsMode::match});
    std::string outcome;
    const auto given = values(*source), found = values(*net);
    for (size_t k = 1; k < found.size(); ++k)
      outcome += found[k][0] < 0 ? '-' : found[k] == given[k] ? '+' : '?';
    EXPECT_EQ(outcome, pair.outcome) << pair.what;
  }
}

// NVCaffe's order is ours; a fork of Intel's has scale and bias first.
TEST_F(Weights, OfForksBatchNorms) {
  const NetFile description = parse_net_text(
      "layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: [2, 2, 3, 3] } } } "
      "layer { "
      "name: 'bn' type: 'BatchNorm' bottom: 'x' top: 'bn' param { lr_mult: 1 decay_mult: 0 } "
      "batch_norm_param { scale_filler { value: 2 } bias_filler { value: 1 } engine: CUDNN } }",
      "net");
  const std::vector<std::vector<float>> wanted = {{1, 2}, {3, 4}, {5}, {6, 7}, {8, 9}};
  for (const int first : {0, 3}) {
    NetParameter stored;
    LayerParameter& layer = *stored.add_layer();
    layer.set_name("bn");
    for (int k = 0; k < 5; ++k) {
      const std::vector<float>& blob = wanted[(first + k) % 5];
      layer.add_blobs()->mutable_shape()->add_dim(static_cast<int64_t>(blob.size()));
      layer.mutable_blobs(k)->mutable_data()->Add(blob.begin(), blob.end());
    }
    folder_.write("bn.caffemodel", stored.SerializeAsString());
    const auto net = net_of(description);
    load_weights(*net, file("bn.caffemodel"));
    EXPECT_EQ(values(*net), wanted) << first;
  }
}

TEST_F(Weights, AMissingDatasetIsNoSharedParameter) {
  const NetFile description = parse_net_text(
      "layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: [2, 2] } } } layer { "
      "name: "
      "'bn' type: 'BatchNorm' bottom: 'x' top: 'bn' }",
      "net");
  Hdf5Writer damaged(file("bn.h5"));
  const float ones[] = {1, 1};
  damaged.floats("data/bn/0", Shape{2}, ones);
  damaged.floats("data/bn/2", Shape{1}, ones);
  damaged.commit();
  const auto net = net_of(description);
  expect_part(error_of([&] { load_weights(*net, file("bn.h5")); }),
              "layer \"bn\": parameter 1 is not in the file");
}

// An RBM named "a" of 4 units, some with the state of Gibbs chains.
TEST_F(Weights, AnInnerProductTakesTheHiddenUnitsOfAnRbm) {
  const auto machine = [&](int chains) {
    context_.seed = static_cast<uint64_t>(chains) + 1;
    return net_of(parse_net_text(
        cat("layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 5 } } } "
            "layer { name: 'a' type: 'RBM' bottom: 'x' top: 'e' rbm_param { num_output: 4 "
            "persistent_chains: ",
            chains, " bias_filler { type: 'uniform' } visible_bias_filler { type: 'uniform' } } }"),
        "machine"));
  };
  using Values = std::vector<std::vector<float>>;
  const auto first = [](const Values& all, int count) {
    return Values(all.begin(), all.begin() + count);
  };
  for (const bool hdf5 : {false, true}) {
    const std::string path = file(hdf5 ? "x.h5" : "x.caffemodel");
    for (const int chains : {0, 3}) {
      SCOPED_TRACE(cat(hdf5, " ", chains));
      const auto source = machine(chains);
      for (const Parameter& parameter : source->parameters()) {
        if (parameter.index != 3) continue;
        const std::vector<float> ones(parameter.shape.count(), 1.f);
        from_floats(context_, ones.data(), parameter.data);
      }
      (hdf5 ? save_hdf5 : save_caffemodel)(*source, path, false);
      const auto dense = chain({"a:4"});
      load_weights(*dense, path);
      EXPECT_EQ(values(*dense), first(values(*source), 2));
      for (const int others : {0, 3, 5}) {
        const auto other = machine(others);
        load_weights(*other, path);
        EXPECT_EQ(first(values(*other), 3), first(values(*source), 3));
        if (others == 0) continue;
        const float state = others == chains ? 1.f : 0.f;
        EXPECT_EQ(values(*other)[3], std::vector<float>(others * 4, state)) << others;
      }
    }
  }
  // An InnerProduct has no bias of visible units.
  save_caffemodel(*chain({"a:4"}), file("y.caffemodel"));
  const auto bare = machine(0);
  expect_part(error_of([&] { load_weights(*bare, file("y.caffemodel")); }),
              "layer \"a\": the file has 2 blobs, the net 3");
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
