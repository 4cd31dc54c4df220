// with_repeats(): the text of a net with runs of equal layers as `repeat` blocks.
#include "exchange/repeats.h"

#include <gtest/gtest.h>

#include "net/prototxt/prototxt.h"

namespace crema::tests {
namespace repeats_test {

std::string layer(const std::string& type, const std::string& bottom, const std::string& top,
                  const std::string& more = "") {
  return cat("layer {\n  name: \"", top, "\"\n  type: \"", type, "\"\n  bottom: \"", bottom,
             "\"\n  top: \"", top, "\"\n", more, "}\n");
}

std::string block(int i, const std::string& outputs) {
  const std::string before = i == 1 ? "data0" : cat("data", i - 1);
  return layer("Convolution", before, cat("conv", 2 * i),
               cat("  convolution_param { num_output: ", outputs, " kernel_size: 3 }\n")) +
         layer("ReLU", cat("conv", 2 * i), cat("relu", i, "_a")) +
         layer("Power", cat("relu", i, "_a"), cat("data", i));
}

// Both are read as the same net.
void expect_same(const std::string& shorter, const std::string& text) {
  EXPECT_EQ(parse_net_text(shorter, "shorter").net.DebugString(),
            parse_net_text(text, "text").net.DebugString());
}

const char* const kHead = "name: \"net\"\nlayer {\n  name: \"data0\"\n  type: \"Input\"\n}\n";

TEST(WithRepeats, WritesEqualBlocksOnce) {
  const std::string text = cat(kHead, "# first\n", block(1, "8"), block(2, "8"), block(3, "8"),
                               block(4, "8"), layer("Softmax", "data4", "prob"));
  const std::string shorter = with_repeats(text);
  EXPECT_EQ(shorter, cat(kHead,
                         "repeat $i = 1..4 {\n"
                         "  # first\n"
                         "  layer {\n    name: \"conv${2 * $i}\"\n    type: \"Convolution\"\n"
                         "    bottom: \"data${i - 1}\"\n    top: \"conv${2 * $i}\"\n"
                         "    convolution_param { num_output: 8 kernel_size: 3 }\n  }\n"
                         "  layer {\n    name: \"relu${i}_a\"\n    type: \"ReLU\"\n"
                         "    bottom: \"conv${2 * $i}\"\n    top: \"relu${i}_a\"\n  }\n"
                         "  layer {\n    name: \"data$i\"\n    type: \"Power\"\n"
                         "    bottom: \"relu${i}_a\"\n    top: \"data$i\"\n  }\n"
                         "}\n",
                         layer("Softmax", "data4", "prob")));
  expect_same(shorter, text);
}

TEST(WithRepeats, KeepsWhatDiffers) {
  // Twice is not enough; other sizes; numbers that do not count on; two layers.
  const std::string pair = layer("ReLU", "data0", "a1") + layer("ReLU", "a1", "b1") +
                           layer("ReLU", "b1", "a2") + layer("ReLU", "a2", "b2") +
                           layer("ReLU", "b2", "a3") + layer("Power", "a3", "b3");
  for (const std::string& layers :
       {block(1, "8") + block(2, "8"), block(1, "8") + block(2, "16") + block(3, "32"),
        block(1, "8") + block(2, "8") + block(4, "8"), pair}) {
    const std::string text = kHead + layers;
    EXPECT_EQ(with_repeats(text), text);
  }
}

TEST(WithRepeats, KeepsDollarSignsOfPlainTexts) {
  const std::string text =
      cat(kHead, block(1, "8"), block(2, "8"), block(3, "8"), layer("Softmax", "data3", "US$3"));
  EXPECT_EQ(with_repeats(text), text);
}

TEST(WithRepeats, KeepsVariablesOfTextsThatHaveThem) {
  const std::string text = cat("$data ?= \"a\"\n", kHead, block(1, "8"), block(2, "8"),
                               block(3, "8"), layer("Softmax", "data3", "$data"));
  const std::string shorter = with_repeats(text);
  EXPECT_NE(shorter.find("repeat"), std::string::npos);
  expect_same(shorter, text);
}

TEST(WithRepeats, FindsRunsAroundRuns) {
  std::string text = kHead;
  for (int i = 1; i <= 3; ++i) text += block(i, "8");
  text += layer("Softmax", "data3", "data10");
  for (int i = 11; i <= 16; ++i) text += block(i, "16");
  const std::string shorter = with_repeats(text);
  EXPECT_NE(shorter.find("repeat $i = 1..3 {"), std::string::npos);
  EXPECT_NE(shorter.find("repeat $i = 11..16 {"), std::string::npos);
  expect_same(shorter, text);
}

TEST(WithRepeats, LeavesLeadingZerosAndEscapesAlone) {
  std::string text = kHead;
  for (const char* i : {"01", "02", "03", "04"})
    text += layer("ReLU", "data0", cat("a", i)) + layer("ReLU", "data0", cat("b", i)) +
            layer("ReLU", "data0", cat("c\\303\\274", i));
  expect_same(with_repeats(text), text);
}

}  // namespace repeats_test
}  // namespace crema::tests
