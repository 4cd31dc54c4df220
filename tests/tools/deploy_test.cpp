// `crema deploy`: the nets for use of models/, of tests/bench and of tests/corpus, and that they
// compute what their nets compute.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <set>
#include <tuple>

#include "base/files.h"
#include "tools/program.h"

namespace crema::tests {
namespace deploy_verb_test {

const std::string kModels = CREMA_TEST_DATA "/../models/";

constexpr const char* kLenet = R"(# crema: input {
# crema:   name: "data"
# crema:   channels: GRAY
# crema:   resize_height: 28
# crema:   resize_width: 28
# crema:   transform_param { scale: 0.00390625 }
# crema: }
name: "LeNet"
layer {
  name: "data"
  type: "Input"
  top: "data"
  input_param { shape { dim: 1 dim: 1 dim: 28 dim: 28 } }
}
layer {
  name: "conv1"
  type: "Convolution"
  bottom: "data"
  top: "conv1"
  convolution_param { num_output: 20 kernel_size: 5 }
}
layer {
  name: "pool1"
  type: "Pooling"
  bottom: "conv1"
  top: "pool1"
  pooling_param { pool: MAX kernel_size: 2 stride: 2 }
}
layer {
  name: "conv2"
  type: "Convolution"
  bottom: "pool1"
  top: "conv2"
  convolution_param { num_output: 50 kernel_size: 5 }
}
layer {
  name: "pool2"
  type: "Pooling"
  bottom: "conv2"
  top: "pool2"
  pooling_param { pool: MAX kernel_size: 2 stride: 2 }
}
layer {
  name: "ip1"
  type: "InnerProduct"
  bottom: "pool2"
  top: "ip1"
  inner_product_param { num_output: 500 }
}
layer {
  name: "relu1"
  type: "ReLU"
  bottom: "ip1"
  top: "ip1"
}
layer {
  name: "ip2"
  type: "InnerProduct"
  bottom: "ip1"
  top: "ip2"
  inner_product_param { num_output: 10 }
}
layer {
  name: "prob"
  type: "Softmax"
  bottom: "ip2"
  top: "prob"
}
)";

TEST(DeployVerb, WritesLenet) {
  const Folder folder;
  const std::string command =
      cat("deploy -model ", kModels, "lenet/train_val.prototxt -assume data=1x1x28x28");
  const Outcome shown = run(folder, command);
  ASSERT_EQ(shown.code, 0) << shown.err;
  const size_t line = shown.out.find('\n') + 1;
  EXPECT_TRUE(starts_with(shown.out, "# The net of ")) << shown.out;
  EXPECT_EQ(shown.out.substr(line), kLenet);
  const Outcome written = run(folder, command + " -output net.prototxt");
  EXPECT_EQ(written.out, "");
  EXPECT_EQ(folder.read("net.prototxt"), shown.out);
}

// Image preparation: flags go into the file, and stay there whatever rewrites it.
TEST(DeployVerb, KeepsThePreparationOfImages) {
  const Folder folder;
  folder.write("data/names", "cat\ndog\n");
  folder.write(
      "data/net.prototxt",
      "layer { name: \"data\" type: \"Data\" top: \"data\" top: \"label\" transform_param { "
      "crop_size: 4 mirror: true mean_file: \"mean.binaryproto\" } data_param { source: "
      "\"gone\" batch_size: 2 } }\n"
      "layer { name: \"ip\" type: \"InnerProduct\" bottom: \"data\" top: \"ip\" "
      "inner_product_param { num_output: 2 } }\n"
      "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"ip\" bottom: \"label\" "
      "top: \"loss\" }\n");
  folder.write(
      "data/mean.binaryproto",
      std::string("\x08\x01\x10\x03\x18\x05\x20\x05\x2a\xac\x02", 11) + std::string(300, '\0'));
  folder.write("out/.here", "");
  const auto lines = [&](const std::string& file) {
    std::string text;
    for (const std::string& line : split(folder.read(file), '\n'))
      if (starts_with(line, "# crema: ")) text += line.substr(9) + "\n";
    return text;
  };
  const std::string written =
      "input {\n  name: \"data\"\n  channels: RGB\n  resize_height: 5\n  resize_width: 5\n"
      "  transform_param {\n    scale: 0.5\n    crop_size: 4\n    mean_file: "
      "\"../data/mean.binaryproto\"\n  }\n}\nlabels: \"../data/names\"\n";
  ASSERT_EQ(run(folder,
                "deploy -model data/net.prototxt -scale 0.5 -rgb -labels data/names -output "
                "out/a.prototxt")
                .code,
            0);
  EXPECT_EQ(lines("out/a.prototxt"), written);
  // From another folder, and through the verbs that write nets.
  ASSERT_EQ(run(folder, "deploy -model out/a.prototxt -output out/b.prototxt").code, 0);
  ASSERT_EQ(run(folder, "crema expand out/b.prototxt out/c.prototxt").code, 0);
  ASSERT_EQ(run(folder, "upgrade_net_proto_text out/c.prototxt out/d.prototxt").code, 0);
  ASSERT_EQ(run(folder, "crema surgery -model out/d.prototxt -output out/e.prototxt").code, 0);
  for (const char* file : {"b", "c", "d", "e"})
    EXPECT_EQ(lines(cat("out/", file, ".prototxt")), written) << file;
  ASSERT_EQ(
      run(folder, "crema surgery -model out/d.prototxt -output out/f.prototxt -resize 8x6").code,
      0);
  EXPECT_EQ(lines("out/f.prototxt"),
            "input {\n  name: \"data\"\n  channels: RGB\n  resize_height: 6\n  resize_width: 8\n"
            "  transform_param { scale: 0.5 mean_file: \"../data/mean.binaryproto\" }\n}\n"
            "labels: \"../data/names\"\n");
  folder.write("wrong.prototxt",
               "# crema: input {\n# crema:   name: \"data\" scael: 2\n# crema: }\n" +
                   folder.read("out/a.prototxt"));
  expect_part(run(folder, "summary -model wrong.prototxt").errors().at(0), "wrong.prototxt:2:25: ");
}

struct Known {
  const char *net, *flags, *first, *last, *sum;
};

const Known kKnown[] = {
    {"cifar10_quick", "-assume data=1x3x32x32", "data 1x3x32x32", "prob 1x10",
     "\n13 layers; 145,578 parameters"},
    {"cifar10_full", "-assume data=1x3x32x32", "data 1x3x32x32", "prob 1x10",
     "\n14 layers; 89,578 parameters"},
    {"../tests/bench/nets/googlenet", "-batch 2", "data 2x3x224x224", "prob 2x1000",
     " 6,998,552 parameters"},
};

TEST(DeployVerb, KeepsShapesAndParameters) {
  for (const Known& row : kKnown) {
    SCOPED_TRACE(row.net);
    const Folder folder;
    const bool folders = std::filesystem::is_directory(kModels + row.net);
    const Outcome made =
        run(folder, cat("deploy -model ", kModels, row.net, folders ? "/train_val" : "",
                        ".prototxt -output net.prototxt ", row.flags));
    ASSERT_EQ(made.code, 0) << made.err;
    const Outcome outcome = run(folder, "summary -model net.prototxt -phase TEST");
    for (const char* part : {row.first, row.last, row.sum}) expect_part(outcome.out, part);
  }
}

// Weights say how many channels and pixels the net learned from.
TEST(DeployVerb, TakesTheShapeFromWeights) {
  for (const auto& [net, flags, input] :
       std::initializer_list<std::tuple<const char*, const char*, const char*>>{
           {"lenet/train_val", "data=1x1x28x28", "dim: 1 dim: 1 dim: 28 dim: 28"},
           {"cifar10_quick/train_val", "data=1x3x32x32", "dim: 1 dim: 3 dim: 32 dim: 32"}}) {
    SCOPED_TRACE(net);
    const Folder folder;
    const std::string model = cat("deploy -model ", kModels, net, ".prototxt -output ");
    ASSERT_EQ(run(folder, cat(model, "known.prototxt -assume ", flags)).code, 0);
    folder.write("solver.prototxt",
                 "net: \"train.prototxt\" base_lr: 0 lr_policy: \"fixed\" "
                 "max_iter: 1 snapshot_prefix: \"w\"");
    std::string train = folder.read("known.prototxt");
    for (const auto& [from, to] :
         {std::pair("type: \"Softmax\"", "type: \"Softmax\" loss_weight: 1"),
          std::pair("\"Input\"", "\"DummyData\""), std::pair("input_param", "dummy_data_param")})
      train = std::regex_replace(train, std::regex(from), to);
    folder.write("train.prototxt", train);
    const Outcome trained = run(folder, "train -solver solver.prototxt");
    ASSERT_EQ(trained.code, 0) << trained.err;
    const Outcome outcome =
        run(folder, cat(model, "made.prototxt -assume default -weights w_iter_1.caffemodel"));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    expect_part(folder.read("made.prototxt"), input);
  }
}

TEST(DeployVerb, LeavesNothingAfterAMistake) {
  const Folder folder;
  const Outcome outcome =
      run(folder, cat("deploy -model ", kModels, "lenet/train_val.prototxt -output net.prototxt"));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.out, "");
  ASSERT_EQ(outcome.errors().size(), 1u) << outcome.err;
  expect_part(outcome.errors()[0], "lenet/train_val.prototxt:17:1: layer \"data\" (Data): ");
  expect_part(outcome.errors()[0], "for example -assume data=1x");
  EXPECT_FALSE(folder.has("net.prototxt"));
}

// Nets whose layers have sizes that fit only their batch in training.
const std::set<std::string> kOneBatchOnly = {"clips_segments"};

// With the phase that has the data: many nets are written for one.
TEST(DeployVerb, MakesNetsThatRun) {
  for (const char* of : {"corpus", "bench/nets"}) {
    const Folder folder;
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(cat(CREMA_TEST_DATA "/", of)))
      if (entry.path().extension() == ".prototxt") files.push_back(entry.path());
    ASSERT_FALSE(files.empty());
    for (const std::filesystem::path& file : files) {
      SCOPED_TRACE(file);
      const std::string text = read_file(file);
      std::smatch assume;
      const bool states = std::regex_search(text, assume, std::regex("# assume: *(\\S+)"));
      Outcome made;
      for (const char* phase : {"TEST", "TRAIN"}) {
        made = run(folder, cat("deploy -model ", file.string(), " -phase ", phase, " -assume ",
                               states ? assume[1].str() : "default", " -output net.prototxt"));
        if (made.code == 0) break;
        EXPECT_EQ(made.errors().size(), 1u) << made.err;
        const std::string error = made.errors().empty() ? "" : made.errors()[0];
        EXPECT_TRUE(error.find("no layer above makes the bottom") != std::string::npos ||
                    error.find("no data layer has a top") != std::string::npos)
            << error;
      }
      EXPECT_EQ(made.code, 0) << made.err;
      const Outcome outcome = run(folder, "summary -model net.prototxt -phase TEST");
      EXPECT_EQ(outcome.code, kOneBatchOnly.count(file.stem())) << outcome.err;
      EXPECT_EQ(outcome.errors().size(), kOneBatchOnly.count(file.stem()));
    }
  }
}

// A blob's values as `crema test` prints them.
std::vector<std::string> printed(const Outcome& outcome, const std::string& blob) {
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  std::vector<std::string> lines;
  for (const std::string& line : outcome.messages()) {
    if (line.find(", " + blob + " = ") != std::string::npos) lines.push_back(line);
  }
  return lines;
}

// Random images of 28 x 28, LeNet after two iterations: the database tells the shape, and the net
// for use gives the probabilities of the net that was trained.
TEST(DeployVerb, ComputesWhatTheNetComputes) {
  const Folder folder;
  std::string images("\0\0\x08\x03\0\0\0\x40\0\0\0\x1c\0\0\0\x1c", 16),
      labels("\0\0\x08\x01\0\0\0\x40", 8);
  for (int i = 0; i < 64 * 784; ++i) images += static_cast<char>(i * 31 % 241 + i / 784);
  for (int i = 0; i < 64; ++i) labels += static_cast<char>(i % 10);
  folder.write("images", images);
  folder.write("labels", labels);
  folder.write("data/digits/README", "");
  for (const char* part : {"train", "test"})
    ASSERT_EQ(
        run(folder, cat("convert_mnist_data images labels data/digits/digits_", part, "_lmdb"))
            .code,
        0);
  const std::string net = kModels + "lenet/digits_train_val.prototxt";
  folder.write("solver.prototxt",
               cat("net: \"", net,
                   "\" base_lr: 0.01 lr_policy: \"fixed\" max_iter: 2 random_seed: 3 "
                   "snapshot_prefix: \"trained\""));
  ASSERT_EQ(run(folder, "train -solver solver.prototxt").code, 0);
  const Outcome made = run(folder, cat("deploy -batch 100 -output use.prototxt -model ", net));
  ASSERT_EQ(made.code, 0) << made.err;
  const std::string use = folder.read("use.prototxt");
  expect_part(use, "shape { dim: 100 dim: 1 dim: 28 dim: 28 }");

  // Both read the same images.
  folder.write(
      "judged.prototxt",
      read_file(net) + "layer { name: \"prob\" type: \"Softmax\" bottom: \"ip2\" top: \"prob\" }");
  const std::regex input("type: \"Input\"\n  top: \"data\"\n.*\n");
  folder.write("used.prototxt",
               std::regex_replace(use, input,
                                  "type: \"Data\" top: \"data\" transform_param { scale: "
                                  "0.00390625 } data_param { source: "
                                  "\"data/digits/digits_test_lmdb\" backend: LMDB batch_size: 100 "
                                  "}\n"));
  const auto values = [&](const std::string& file) {
    return printed(
        run(folder, cat("test -iterations 1 -weights trained_iter_2.caffemodel -model ", file)),
        "prob");
  };
  const std::vector<std::string> judged = values("judged.prototxt");
  EXPECT_EQ(judged.size(), 1000u);
  EXPECT_EQ(values("used.prototxt"), judged);
}

}  // namespace deploy_verb_test
}  // namespace crema::tests
