// The least that a step has to do: operations and bytes, counted by hand.
#include "net/plan/work.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "net/net.h"
#include "net/plan/plan.h"

namespace crema::tests {
namespace work_test {

struct WorkCase {
  const char* name;
  const char* layer;  // x (2, 4, 6, 5) -> y
  double multiply_adds;
  int64_t weights, outputs;  // elements of parameters, of y
  bool keeps_bottom;         // backward reads x
};

const WorkCase kCases[] = {
    {"convolution",
     R"(type: "Convolution" convolution_param { num_output: 6 kernel_size: 3 group: 2 })",
     2 * 6 * 4 * 3 * 2 * 9, 6 * 2 * 9 + 6, 2 * 6 * 4 * 3, true},
    {"deconvolution", R"(type: "Deconvolution" convolution_param { num_output: 3 kernel_size: 2 })",
     2 * 4 * 6 * 5 * 3 * 4, 4 * 3 * 4 + 3, 2 * 3 * 7 * 6, true},
    {"inner_product", R"(type: "InnerProduct" inner_product_param { num_output: 7 })", 2 * 7 * 120,
     7 * 120 + 7, 2 * 7, true},
    {"power", R"(type: "Power" power_param { scale: 2 })", 0, 0, 2 * 120, false},
};

class WorkTest : public testing::TestWithParam<WorkCase> {};

TEST_P(WorkTest, CountsOperationsAndBytes) {
  const WorkCase& c = GetParam();
  NetParameter net;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(cat(R"(force_backward: true
             layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 2 dim: 4 dim: 6 dim: 5 } } }
             layer { name: "it" bottom: "x" top: "y" )",
                                                                c.layer, "}"),
                                                            &net));
  Context context(Device::cpu);
  NetOptions options;
  options.format = false;  // no Reorder takes a part
  options.seed_outputs = true;
  Net n(context, net, options);
  Work forward, backward;
  n.set_observer([&](const Net::StepInfo& step, bool begin) {
    if (begin || step.node->message.name() != "it") return;
    (step.backward ? backward : forward) =
        step.backward ? backward_work(*step.node) : forward_work(*step.node);
  });
  n.forward(0);
  n.backward();
  const int64_t x = 2 * 120, y = c.outputs, w = c.weights;
  const bool weights = w > 0;
  EXPECT_EQ(forward.operations, 2 * c.multiply_adds);
  EXPECT_EQ(forward.bytes, 4.0 * static_cast<double>(x + w + y));
  EXPECT_EQ(backward.operations, 2 * c.multiply_adds * (1 + weights));
  // Both gradients of blobs, the parameters and theirs, and x if it is read again.
  EXPECT_EQ(backward.bytes, 4.0 * static_cast<double>(x + y + 2 * w + (c.keeps_bottom ? x : 0)));
}

INSTANTIATE_TEST_SUITE_P(Layers, WorkTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace work_test
}  // namespace crema::tests
