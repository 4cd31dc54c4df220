// Nets whose shapes depend on data: a Filter chooses some of a batch's items, and later layers
// compute the same as on a batch of these.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <map>

#include "device/memory_account.h"
#include "net/net.h"
#include "support.h"

namespace crema::tests {
namespace dynamic_test {

constexpr int kItems = 6, kValues = 4;

std::string input(const std::string& name, int items, int values) {
  return cat("layer { name: '", name, "' type: 'Input' top: '", name,
             "' input_param { shape { dim: ", items, " dim: ", values, " } } }\n");
}

NetParameter net_of(const std::string& text) {
  NetParameter net;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &net)) << text;
  return net;
}

const std::string kFirst =
    "layer { name: 'first' type: 'InnerProduct' bottom: 'x' top: 'first' inner_product_param { "
    "num_output: 5 weight_filler { type: 'xavier' } } }\n";
const std::string kFilter =
    "layer { name: 'some' type: 'Filter' bottom: 'first' bottom: 'label' bottom: 'choice' top: "
    "'some' top: 'targets' }\n";

// Two readers of the chosen items, one of which works in place; two losses over both.
NetParameter chain(int items, bool with_filter) {
  const std::string data = with_filter ? "some" : "first";
  const std::string label = with_filter ? "targets" : "label";
  return net_of(
      "name: 'chain'\n" + input("x", items, kValues) + input("label", items, 1) +
      (with_filter ? input("choice", items, 1) : "") + kFirst + (with_filter ? kFilter : "") +
      "layer { name: 'relu' type: 'ReLU' bottom: '" + data + "' top: 'relu' }\n" +
      "layer { name: 'second' type: 'InnerProduct' bottom: 'relu' top: 'second' "
      "inner_product_param { num_output: 3 weight_filler { type: 'xavier' } } }\n"
      "layer { name: 'third' type: 'InnerProduct' bottom: '" +
      data +
      "' top: 'third' inner_product_param { num_output: 3 weight_filler { type: 'xavier' } } }\n"
      "layer { name: 'sum' type: 'Eltwise' bottom: 'second' bottom: 'third' top: 'sum' }\n"
      "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'sum' bottom: '" +
      label +
      "' top: 'loss' loss_param { normalization: VALID } }\n"
      "layer { name: 'distance' type: 'EuclideanLoss' bottom: 'third' bottom: 'second' top: "
      "'distance' loss_weight: 0.01 }\n");
}

std::vector<double> values_of(const std::vector<int>& items, int values, int kind) {
  std::vector<double> all;
  for (int item : items) {
    for (int k = 0; k < values; ++k)
      all.push_back(kind == 0 ? std::sin(1.0 + item * 7 + k * 3) : item % 3);
  }
  return all;
}

struct Numbers {
  double loss = 0;
  std::map<std::string, std::vector<double>> gradients;
};

Numbers run(Context& context, Net& net, const std::vector<int>& items,
            const std::vector<double>* choice, uint64_t pass) {
  from_doubles(context, values_of(items, kValues, 0).data(), net.input("x"));
  from_doubles(context, values_of(items, 1, 1).data(), net.input("label"));
  if (choice) from_doubles(context, choice->data(), net.input("choice"));
  net.forward(pass);
  net.backward();
  Numbers numbers;
  numbers.loss = net.loss();
  for (const Parameter& p : net.parameters())
    numbers.gradients[cat(p.layer, p.index)] = to_doubles(context, p.diff);
  return numbers;
}

NetOptions options_for(bool keep_blobs) {
  NetOptions options;
  options.state.set_phase(TRAIN);
  options.dtype = DType::f64;
  options.keep_blobs = keep_blobs;
  return options;
}

void expect_near(const Numbers& wanted, const Numbers& got) {
  EXPECT_NEAR(wanted.loss, got.loss, 1e-12);
  for (const auto& [name, values] : wanted.gradients) {
    ASSERT_EQ(values.size(), got.gradients.at(name).size()) << name;
    for (size_t i = 0; i < values.size(); ++i)
      ASSERT_NEAR(values[i], got.gradients.at(name)[i], 1e-12) << name << " " << i;
  }
}

class Dynamic : public testing::TestWithParam<std::tuple<Device, bool>> {
 protected:
  void SetUp() override {
    if (std::get<0>(GetParam()) == Device::gpu && gpu_count() == 0) GTEST_SKIP() << gpu_problem();
  }
};

TEST_P(Dynamic, ComputesWhatTheChosenItemsAloneWould) {
  const auto [device, keep_blobs] = GetParam();
  Context context(device);
  Net net(context, chain(kItems, true), options_for(keep_blobs));
  EXPECT_TRUE(net.dynamic());
  std::vector<int> all;
  for (int i = 0; i < kItems; ++i) all.push_back(i);
  uint64_t pass = 0;
  for (const std::vector<double>& choice : {std::vector<double>{0, 1, 0, 0, 1, 0},
                                            {1, 1, 1, 1, 1, 1},
                                            {0, 0, 0, 1, 0, 0},
                                            {1, 1, 0, 1, 1, 1},
                                            {1, 1, 0, 1, 1, 1}}) {
    std::vector<int> chosen;
    for (int i = 0; i < kItems; ++i) {
      if (choice[i] != 0) chosen.push_back(i);
    }
    SCOPED_TRACE(cat(chosen.size(), " items"));
    Net alone(context, chain(static_cast<int>(chosen.size()), false), options_for(keep_blobs));
    expect_near(run(context, alone, chosen, nullptr, pass), run(context, net, all, &choice, pass));
    ++pass;
  }
}

TEST_P(Dynamic, NothingChosenGivesNoLossAndNoGradient) {
  const auto [device, keep_blobs] = GetParam();
  Context context(device);
  Net net(context, chain(kItems, true), options_for(keep_blobs));
  std::vector<int> all;
  for (int i = 0; i < kItems; ++i) all.push_back(i);
  const std::vector<double> some = {1, 0, 1, 1, 0, 0}, none(kItems, 0);
  const Numbers before = run(context, net, all, &some, 0);
  EXPECT_GT(before.loss, 0);
  const Numbers nothing = run(context, net, all, &none, 1);
  EXPECT_EQ(nothing.loss, 0);
  for (const auto& [name, values] : nothing.gradients) {
    for (double value : values) EXPECT_EQ(value, 0) << name;
  }
  expect_near(before, run(context, net, all, &some, 2));
}

TEST_P(Dynamic, TakesNoMemoryAndEqualShapesChangeNothing) {
  const auto [device, keep_blobs] = GetParam();
  Context context(device);
  Net net(context, chain(kItems, true), options_for(keep_blobs));
  std::vector<int> all;
  for (int i = 0; i < kItems; ++i) all.push_back(i);
  run(context, net, all, std::make_unique<std::vector<double>>(kItems, 1).get(), 0);
  const size_t taken = context.memory()->taken();
  const std::vector<double> two = {1, 0, 0, 0, 0, 1}, others = {0, 1, 1, 0, 0, 0};
  run(context, net, all, &two, 1);
  const uint64_t generation = net.generation();
  run(context, net, all, &others, 2);
  EXPECT_EQ(net.generation(), generation);
  EXPECT_EQ(context.memory()->taken(), taken);
}

INSTANTIATE_TEST_SUITE_P(Devices, Dynamic,
                         testing::Combine(testing::Values(Device::cpu, Device::gpu),
                                          testing::Bool()),
                         [](const auto& info) {
                           return cat(std::get<0>(info.param) == Device::cpu ? "cpu" : "gpu",
                                      std::get<1>(info.param) ? "_all_blobs" : "_planned");
                         });

// A shape that the rest cannot take is reported with the layer's name.
TEST(DynamicShapes, ErrorsNameTheLayer) {
  Context context(Device::cpu);
  Net net(
      context,
      net_of(input("first", kItems, 1) + input("label", kItems, 1) + input("choice", kItems, 1) +
             kFilter +
             "layer { name: 'pairs' type: 'Reshape' bottom: 'some' top: 'pairs' reshape_param { "
             "shape { dim: -1 dim: 2 } } }"),
      options_for(false));
  const std::vector<double> odd = {1, 1, 1, 0, 0, 0};
  from_doubles(context, odd.data(), net.input("choice"));
  expect_part(error_of([&] { net.forward(0); }),
              "layer \"pairs\": dim -1 has no solution: the bottom (3x1) has 3 values");
}

}  // namespace dynamic_test
}  // namespace crema::tests
