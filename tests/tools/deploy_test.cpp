// `crema deploy`: the nets for use of models/, of tests/bench and of tests/corpus, and that they
// compute what their nets compute.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <set>

#include "base/files.h"
#include "tools/program.h"

namespace crema::tests {
namespace deploy_verb_test {

const std::string kModels = CREMA_TEST_DATA "/../models/";

constexpr const char* kLenet = R"(# data: 1x1x28x28; times 0.00390625
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

// Nets whose layers state sizes of their own that only their batch in training fits.
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

// What `crema test` prints of a blob's values.
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
