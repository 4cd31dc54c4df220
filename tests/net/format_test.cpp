// Pass "format": a bottom of which only the shape counts is left in the order it has.
#include <gtest/gtest.h>

#include "net/net.h"
#include "net/prototxt/prototxt.h"
#include "support.h"

namespace crema::tests {
namespace format_test {

// A convolution makes c channels-last; `layer` requires plain order, or that of x.
std::string dump_of(const std::string& layer) {
  const NetFile file = parse_net_text(
      cat(R"(layer { name: "data" type: "Input" top: "x" input_param { shape { dim: 2 dim: 8 dim: 6 dim: 6 } } }
             layer { name: "c" type: "Convolution" bottom: "x" top: "c"
                     convolution_param { num_output: 8 kernel_size: 3 } }
             layer { name: "d" type: "Convolution" bottom: "c" top: "d"
                     convolution_param { num_output: 8 kernel_size: 1 } })",
          layer),
      "net.prototxt");
  Context context(Device::cpu);
  return Net(context, file.net, {}).dump_plan();
}

int reorders_of_c(const std::string& layer) {
  const std::string dump = dump_of(layer);
  int count = 0;
  for (size_t at = 0; (at = dump.find("c_reorder", at)) != std::string::npos; ++at) ++count;
  return count;
}

TEST(Format, ABottomOfWhichOnlyTheShapeCountsStaysAsItIs) {
  EXPECT_GT(reorders_of_c(R"(layer { name: "f" type: "Flatten" bottom: "c" top: "f" })"), 0);
  EXPECT_EQ(reorders_of_c(R"(layer { name: "p" type: "PriorBox" bottom: "c" bottom: "x" top: "p"
                                     prior_box_param { min_size: 3 } })"),
            0);
  EXPECT_EQ(reorders_of_c(R"(layer { name: "p" type: "Crop" bottom: "x" bottom: "c" top: "p"
                                     crop_param { offset: 1 } })"),
            0);
  EXPECT_EQ(reorders_of_c(R"(layer { name: "s" type: "Silence" bottom: "x" bottom: "c" })"), 0);
}

// A program's input is converted once, when it is set; not if its gradient is requested.
TEST(Format, AnInputLiesInTheFormatOfItsReader) {
  for (const bool gradient : {false, true}) {
    NetFile file = parse_net_text(
        R"(layer { name: "data" type: "Input" top: "x"
                   input_param { shape { dim: 2 dim: 3 dim: 6 dim: 5 } } }
           layer { name: "c" type: "Convolution" bottom: "x" top: "c" loss_weight: 1
                   convolution_param { num_output: 4 kernel_size: 3
                                       weight_filler { type: "xavier" } } })",
        "net.prototxt");
    file.net.set_force_backward(gradient);
    std::vector<float> values(2 * 3 * 6 * 5);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 13) - 6;
    std::vector<double> tops[2];
    for (const bool format : {false, true}) {
      Context context(Device::cpu);
      NetOptions options;
      options.state.set_phase(TRAIN);
      options.format = format;
      Net net(context, file.net, options);
      const std::string dump = net.dump_plan();
      EXPECT_EQ(dump.find("x_reorder") == std::string::npos, !format || !gradient) << dump;
      net.set_input("x", values.data());
      EXPECT_EQ(to_floats(context, net.input("x")), values);
      EXPECT_EQ(net.input("x").format().order == Order::channels_last, format && !gradient);
      net.forward(0);
      tops[format] = to_doubles(context, net.blob("c"));
    }
    ASSERT_EQ(tops[0].size(), tops[1].size());
    for (size_t i = 0; i < tops[0].size(); ++i) EXPECT_NEAR(tops[0][i], tops[1][i], 1e-5) << i;
  }
}

}  // namespace format_test
}  // namespace crema::tests
