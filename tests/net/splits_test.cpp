#include "net/graph/splits.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "net/graph/graph_builder.h"
#include "proto/layer.pb.h"
#include "support.h"

namespace crema::tests {
namespace splits_test {

NetParameter net_of(const std::string& text) {
  NetParameter net;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &net));
  return net;
}

NetParameter split(const std::string& text, std::vector<int>* origin) {
  return insert_splits(net_of(text), origin,
                       [](const SplitFault& fault) { fail(fault.layer, ": ", fault.text); });
}

// Programs learn from the error itself which layer is wrong, and what it misses.
TEST(Splits, ErrorsSayTheLayer) {
  Context context(Device::cpu);
  const auto error_of = [&](const std::string& text) {
    try {
      build_graph(context, net_of(text), {});
    } catch (const LayerError& error) {
      return error;
    }
    return LayerError("no error", -1, "", "");
  };
  const std::string input =
      "layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 3 } } }";
  const LayerError missing =
      error_of(input + "layer { name: 'a' type: 'ReLU' bottom: 'y' top: 'a' }");
  EXPECT_EQ(missing.layer, 1);
  EXPECT_EQ(missing.missing, "y");
  EXPECT_TRUE(missing.has_data);
  EXPECT_FALSE(error_of("layer { name: 'a' type: 'ReLU' bottom: 'y' top: 'a' }").has_data);
  const LayerError wrong = error_of(input +
                                    "layer { name: 'a' type: 'ReLU' bottom: 'x' top: 'a' }"
                                    "layer { name: 'b' type: 'Convolution' bottom: 'x' top: 'b' }");
  EXPECT_EQ(wrong.layer, 2);
  EXPECT_EQ(wrong.missing, "");
}

TEST(Splits, NamesAreCaffes) {
  std::vector<int> origin;
  const NetParameter net = split(R"(
    layer { name: "data" type: "Data" top: "data" top: "label" }
    layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" }
    layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
    layer { name: "acc" type: "Accuracy" bottom: "ip" bottom: "label" top: "acc" })",
                                 &origin);
  std::vector<std::string> names;
  for (const LayerParameter& layer : net.layer()) names.push_back(layer.name());
  EXPECT_EQ(names, (std::vector<std::string>{"data", "label_data_1_split", "ip", "ip_ip_0_split",
                                             "loss", "acc"}));
  EXPECT_EQ(origin, (std::vector<int>{0, 0, 1, 1, 2, 3}));
  EXPECT_EQ(net.layer(1).top(1), "label_data_1_split_1");
  EXPECT_EQ(net.layer(4).bottom(0), "ip_ip_0_split_0");
  EXPECT_EQ(net.layer(5).bottom(1), "label_data_1_split_1");
}

TEST(Splits, InPlaceLayersMakeNewVersions) {
  std::vector<int> origin;
  const NetParameter net = split(R"(
    layer { name: "in" type: "Input" top: "x" }
    layer { name: "relu" type: "ReLU" bottom: "x" top: "x" }
    layer { name: "a" type: "Power" bottom: "x" top: "a" }
    layer { name: "b" type: "Power" bottom: "x" top: "b" })",
                                 &origin);
  ASSERT_EQ(net.layer_size(), 5);
  EXPECT_EQ(net.layer(1).bottom(0), "x");
  EXPECT_EQ(net.layer(2).name(), "x_relu_0_split");
}

TEST(Splits, LossWeightsMoveToTheSplit) {
  std::vector<int> origin;
  const NetParameter net = split(R"(
    layer { name: "in" type: "Input" top: "x" }
    layer { name: "r" type: "Power" bottom: "x" top: "y" loss_weight: 2 }
    layer { name: "s" type: "Silence" bottom: "y" })",
                                 &origin);
  ASSERT_EQ(net.layer_size(), 4);
  EXPECT_EQ(net.layer(1).loss_weight_size(), 0);
  EXPECT_EQ(net.layer(2).loss_weight(0), 2);
  EXPECT_EQ(net.layer(2).loss_weight(1), 0);
  EXPECT_EQ(net.layer(3).bottom(0), "y_r_0_split_1");
}

TEST(Splits, MistakesNameTheLayer) {
  std::vector<int> origin;
  const auto message = [&](const std::string& text) {
    return error_of([&] { split(text, &origin); });
  };
  EXPECT_EQ(
      message(
          R"(layer { name: "in" type: "Input" top: "data" } layer { name: "a" type: "Power" bottom: "dat" top: "y" })"),
      "1: bottom 0 is \"dat\", but no layer above has such a top (did you mean \"data\"?)");
  expect_part(
      message(
          R"(layer { name: "in" type: "Data" top: "x" } layer { name: "a" type: "Accuracy" bottom: "x" bottom: "label" })"),
      "such a top; layer \"in\" makes labels as its second top: add top: \"label\"");
  expect_part(
      message(
          R"(layer { name: "in" type: "Input" top: "x" } layer { name: "b" type: "Input" top: "x" })"),
      "made by layer \"in\" already");
  expect_part(
      message(
          R"(layer { name: "a" type: "Power" bottom: "x" top: "y" } layer { name: "in" type: "Input" top: "x" })"),
      "no layer above has such a top; layer \"in\" makes it further down: move that one up");
}

}  // namespace splits_test
}  // namespace crema::tests
