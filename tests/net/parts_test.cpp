// Nets that a program looks into: parts of a pass, blobs that are kept from some pass on, row-major
// blobs and parameters, several inputs reshaped together.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "net/net.h"
#include "net/plan/plan.h"
#include "support.h"

namespace crema::tests {
namespace parts_test {

const char* kNet = R"(
  layer { name: "in" type: "Input" top: "x" top: "label" input_param { shape { dim: 2 dim: 3 dim: 9 dim: 9 } shape { dim: 2 } } }
  layer { name: "c1" type: "Convolution" bottom: "x" top: "c1" convolution_param { num_output: 16 kernel_size: 3 weight_filler { type: "msra" } } }
  layer { name: "r1" type: "ReLU" bottom: "c1" top: "c1" }
  layer { name: "c2" type: "Convolution" bottom: "c1" top: "c2" convolution_param { num_output: 16 kernel_size: 3 weight_filler { type: "msra" } } }
  layer { name: "sum" type: "Eltwise" bottom: "c2" bottom: "c2" top: "sum" }
  layer { name: "ip" type: "InnerProduct" bottom: "sum" top: "ip" inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
  layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" })";

NetOptions options_of(bool kept, Phase phase) {
  NetOptions options;
  options.keep_blobs = options.row_major = kept;
  options.state.set_phase(phase);
  return options;
}

struct OpenNet {
  explicit OpenNet(bool kept, Phase phase = TRAIN)
      : net(context, message(), options_of(kept, phase)) {
    std::vector<float> image(2 * 3 * 9 * 9);
    for (size_t i = 0; i < image.size(); ++i) image[i] = static_cast<float>(i * 37 % 101) / 50 - 1;
    net.set_input("x", image.data());
    const float labels[] = {1, 3};
    net.set_input("label", labels);
  }
  static NetParameter message() {
    NetParameter net;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(kNet, &net));
    return net;
  }
  std::vector<float> blob(const char* name) { return to_floats(context, net.blob(name)); }
  std::vector<std::vector<float>> diffs() {
    std::vector<std::vector<float>> all;
    for (const Parameter& parameter : net.parameters())
      all.push_back(to_floats(context, parameter.diff));
    return all;
  }

  Context context{Device::cpu};
  Net net;
};

int last_layer(Net& net) { return net.graph().net.layer_size() - 1; }

void expect_close(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-5) << i;
}

TEST(Parts, MakeAWholePass) {
  OpenNet whole(true), parts(true);
  whole.net.forward(0);
  whole.net.backward();
  const int last = last_layer(parts.net);
  for (const int middle : {0, 1, 3, 5}) {
    parts.net.forward_layers(0, 0, middle);
    parts.net.forward_layers(0, middle + 1, last);
    expect_close(whole.blob("ip"), parts.blob("ip"));
    zero(parts.context, parts.net.diff_arena());
    parts.net.backward_layers(last, middle + 1);
    parts.net.backward_layers(middle, 0);
    const auto one = whole.diffs(), other = parts.diffs();
    for (size_t i = 0; i < one.size(); ++i) expect_close(one[i], other[i]);
  }
}

TEST(Parts, AddToGradients) {
  OpenNet open(true);
  open.net.forward(0);
  open.net.backward();
  const auto once = open.diffs();
  open.net.backward_layers(last_layer(open.net), 0);
  const auto twice = open.diffs();
  for (size_t i = 0; i < once.size(); ++i) {
    for (size_t k = 0; k < once[i].size(); ++k) ASSERT_NEAR(twice[i][k], 2 * once[i][k], 1e-4);
  }
}

TEST(Parts, NeedKeptBlobs) {
  OpenNet open(false);
  EXPECT_THROW(open.net.forward_layers(0, 0, 1), Error);
  EXPECT_THROW(open.net.backward_layers(1, 0), Error);
}

TEST(LookInto, KeepsBlobsAndWeights) {
  for (const Phase phase : {TRAIN, TEST}) {
    OpenNet plain(true, phase), looked(false, phase);
    plain.net.forward(0);
    looked.net.forward(0);
    const std::vector<float> image = to_floats(looked.context, looked.net.input("x"));
    looked.net.look_into(true);
    looked.net.set_input("x", image.data());
    const float labels[] = {1, 3};
    looked.net.set_input("label", labels);
    looked.net.forward(0);
    looked.net.backward();
    for (const char* name : {"c1", "c2", "sum", "ip"})
      expect_close(plain.blob(name), looked.blob(name));
    EXPECT_EQ(looked.diffs().size(), 6u);
    for (const std::vector<float>& diff : looked.diffs())
      EXPECT_TRUE(std::any_of(diff.begin(), diff.end(), [](float value) { return value != 0; }));
  }
}

TEST(RowMajor, HoldsForBlobsAndParameters) {
  OpenNet open(true), planned(false);
  const std::vector<PlanValue>& values = planned.net.plan().values;
  EXPECT_TRUE(std::any_of(values.begin(), values.end(),
                          [](const PlanValue& value) { return value.order != Order::row_major; }));
  for (const PlanValue& value : open.net.plan().values) EXPECT_EQ(value.order, Order::row_major);
  for (const Parameter& parameter : open.net.parameters())
    EXPECT_TRUE(same_layout(parameter.data.format(), Format::row_major(), parameter.shape));
}

TEST(Reshape, TakesSeveralInputsAtOnce) {
  OpenNet open(true);
  EXPECT_THROW(open.net.reshape("x", {3, 3, 9, 9}), Error);
  open.net.reshape({{"x", {3, 3, 9, 9}}, {"label", {3}}});
  open.net.forward(0);
  EXPECT_EQ(open.net.blob("ip").shape(), (Shape{3, 4}));
}

}  // namespace parts_test
}  // namespace crema::tests
