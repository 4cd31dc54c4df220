// A blob with several readers: the parts of its gradient, written by hand.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "net/net.h"

namespace crema::tests {
namespace diff_parts_test {

// Reads the blob "v" and multiplies it by each factor: the gradient of "v" is the sum of the
// factors, and of the weight it has in the loss.
std::string readers(const std::vector<int>& factors, const std::string& type = "Power") {
  std::string text;
  for (size_t i = 0; i < factors.size(); ++i) {
    text += cat("layer { name: 'r", i, "' type: '", type, "' bottom: 'v' top: 'r", i,
                "' loss_weight: 1 power_param { scale: ", factors[i], " } }\n");
  }
  return text;
}

const char* kInput =
    "force_backward: true\n"
    "layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 3 } } }\n";

struct Result {
  std::vector<double> dx, dw;
  std::string dump;
};

// Two passes, the second one added to the gradients of parameters.
Result run(const std::string& text, bool keep_blobs) {
  NetParameter net;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(kInput + text, &net));
  Context context(Device::cpu);
  NetOptions options;
  options.state.set_phase(TRAIN);
  options.keep_blobs = keep_blobs;
  Net n(context, net, options);
  from_doubles(context, std::vector<double>{1, 2, 3, 4, 5, 6}.data(), n.input("x"));
  for (const bool accumulate : {false, true}) {
    n.forward(0);
    n.backward(accumulate);
  }
  Result result{to_doubles(context, n.input_diff("x")), {}, n.dump_plan()};
  if (!n.parameters().empty()) result.dw = to_doubles(context, n.parameters()[0].diff);
  if (keep_blobs) {
    EXPECT_EQ(to_doubles(context, n.diff("x")), result.dx);
  }
  return result;
}

void expect_gradient(const std::string& text, double want) {
  for (const bool keep_blobs : {false, true}) {
    SCOPED_TRACE(cat(text, keep_blobs ? "kept" : "planned"));
    EXPECT_EQ(run(text, keep_blobs).dx, std::vector<double>(6, want));
  }
}

const char* kTwice =
    "layer { name: 'v' type: 'Power' bottom: 'x' top: 'v' power_param { scale: 2 } }\n";

TEST(DiffParts, OfTheInput) {
  std::string text = readers({3, 5, 7});
  size_t at = 0;
  while ((at = text.find("'v'")) != std::string::npos) text.replace(at, 3, "'x'");
  expect_gradient(text, 15);
  EXPECT_NE(run(text, false).dump.find("sums 3 gradients of x"), std::string::npos);
}

TEST(DiffParts, OfALayerInBetween) {
  expect_gradient(kTwice + readers({3}), 6);
  expect_gradient(kTwice + readers({3, 5}), 16);
  expect_gradient(kTwice + readers({3, 5, 7}), 30);
}

TEST(DiffParts, MoreThanLiveAtATime) {
  std::vector<int> factors;
  int sum = 0;
  for (int i = 1; i <= 20; ++i) {
    factors.push_back(i);
    sum += i;
  }
  expect_gradient(kTwice + readers(factors), 2 * sum);
}

TEST(DiffParts, OfALossWithReaders) {
  const char* weighted =
      "layer { name: 'v' type: 'Power' bottom: 'x' top: 'v' power_param { scale: 2 } "
      "loss_weight: 11 }\n";
  expect_gradient(weighted + readers({3}), 28);
  expect_gradient(weighted + readers({3, 5, 7}), 52);
}

// An in-place layer must not overwrite memory that it still reads as another of its bottoms, here
// through a view.
TEST(DiffParts, OfABlobAndAViewOfIt) {
  const std::string view =
      "layer { name: 'view' type: 'Reshape' bottom: 'v' top: 'view' reshape_param { shape { dim: 0 "
      "dim: -1 } } }\n";
  const std::string sum =
      "layer { name: 'sum' type: 'Eltwise' bottom: 'v' bottom: 'view' bottom: 'view' top: 'sum' "
      "eltwise_param { coeff: 1 coeff: 10 coeff: 100 } }\n"
      "layer { name: 'square' type: 'Power' bottom: 'sum' top: 'square' loss_weight: 1 "
      "power_param { power: 2 } }\n";
  NetParameter net;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(cat(kInput, kTwice, view, sum), &net));
  Context context(Device::cpu);
  NetOptions options;
  options.state.set_phase(TRAIN);
  Net n(context, net, options);
  from_doubles(context, std::vector<double>{1, 2, 3, 4, 5, 6}.data(), n.input("x"));
  n.forward(0);
  n.backward();
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(to_doubles(context, n.outputs()[0].value)[i], 222. * 222 * (i + 1) * (i + 1));
    EXPECT_EQ(to_doubles(context, n.input_diff("x"))[i], 2 * 222. * 222 * (i + 1));
  }
}

// A fused ReLU's backward masks the gradient of its top in place: the loss weight, which no reader
// adds to, must be restored in the next pass.
TEST(DiffParts, OfALossWithoutReaders) {
  const std::string weights = "num_output: 4 weight_filler { type: 'gaussian' std: 1 } } }\n";
  const std::string image =
      "layer { name: 'image' type: 'Reshape' bottom: 'x' top: 'image' "
      "reshape_param { shape { dim: 2 dim: 1 dim: 1 dim: 3 } } }\n";
  const std::string relu =
      "layer { name: 'relu' type: 'ReLU' bottom: 'v' top: 'v' loss_weight: 3 }\n";
  for (const std::string& text :
       {"layer { name: 'v' type: 'InnerProduct' bottom: 'x' top: 'v' inner_product_param { " +
            weights + relu,
        image +
            "layer { name: 'v' type: 'Convolution' bottom: 'image' top: 'v' convolution_param { "
            "kernel_size: 1 " +
            weights + relu}) {
    SCOPED_TRACE(text);
    NetParameter net;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(kInput + text, &net));
    const auto gradient_after = [&](const std::vector<double>& factors) {
      Context context(Device::cpu);
      NetOptions options;
      options.state.set_phase(TRAIN);
      Net n(context, net, options);
      EXPECT_NE(n.dump_plan().find("+ReLU"), std::string::npos);
      for (const double factor : factors) {
        std::vector<double> x = {1, -2, 3, -4, 5, 6};
        for (double& value : x) value *= factor;
        from_doubles(context, x.data(), n.input("x"));
        n.forward(0);
        n.backward();
      }
      return to_doubles(context, n.parameters()[0].diff);
    };
    EXPECT_EQ(gradient_after({-1, 0.5, 1}), gradient_after({1}));
  }
}

// Views and in-place layers write their gradient into the memory of the one that they read.
TEST(DiffParts, OfViewsAndInPlaceLayers) {
  const std::string in_place =
      "layer { name: 'a' type: 'Power' bottom: 'v' top: 'v' power_param { scale: 10 } }\n";
  expect_gradient(kTwice + readers({3}) + in_place +
                      "layer { name: 'b' type: 'Power' bottom: 'v' top: 'b' loss_weight: 1 }\n",
                  26);
  expect_gradient(kTwice + readers({3, 4}, "Flatten"), 4);
  expect_gradient(kTwice + readers({3, 4}) +
                      "layer { name: 'f' type: 'Flatten' bottom: 'v' top: 'f' }\n"
                      "layer { name: 'g' type: 'Power' bottom: 'f' top: 'g' loss_weight: 1 }\n"
                      "layer { name: 'h' type: 'Power' bottom: 'f' top: 'h' loss_weight: 1 "
                      "power_param { scale: 6 } }\n",
                  28);
}

// debug_info's value when the layer that made the blob begins.
TEST(DiffParts, AreAddedUpBeforeTheirLayersBackward) {
  NetParameter net;
  ASSERT_TRUE(
      google::protobuf::TextFormat::ParseFromString(cat(kInput, kTwice, readers({3, 5, 7})), &net));
  Context context(Device::cpu);
  NetOptions options;
  options.state.set_phase(TRAIN);
  options.keep_blobs = true;
  Net n(context, net, options);
  n.forward(0);
  std::vector<double> seen;
  n.set_observer([&](const Net::StepInfo& step, bool begin) {
    if (step.backward && begin) seen = to_doubles(context, n.diff("v"));
  });
  n.backward();  // the last step is that of "v"
  EXPECT_EQ(seen, std::vector<double>(6, 15));
}

TEST(DiffParts, AccumulateInTheParameters) {
  const Result got = run(
      "layer { name: 'v' type: 'Scale' bottom: 'x' top: 'v' scale_param { filler { value: 2 } } }" +
          readers({3, 5, 7}),
      false);
  EXPECT_EQ(got.dx, std::vector<double>(6, 30));
  // Of channels: 15 (x of both rows), two passes.
  EXPECT_EQ(got.dw, (std::vector<double>{150, 210, 270}));
}

}  // namespace diff_parts_test
}  // namespace crema::tests
