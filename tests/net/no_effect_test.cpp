// Fields that a file has for other programs are reported once each, with their position.
#include <gtest/gtest.h>

#include "net/prototxt/prototxt.h"
#include "support.h"

namespace crema::tests {
namespace no_effect_test {

std::vector<std::string> warnings(const std::vector<Note>& notes) {
  std::vector<std::string> lines;
  for (const Note& note : notes)
    if (note.severity == Severity::warning) lines.push_back(note.line);
  return lines;
}

TEST(NoEffect, OneLineAField) {
  const NetFile file = parse_net_text(
      "layer { name: \"a\" type: \"Convolution\"\n"
      "  convolution_param { num_output: 1 kernel_size: 1 engine: MKLDNN }\n"
      "  quantization_param { bw_layer_in: 8 } }\n"
      "layer { name: \"b\" type: \"Convolution\"\n"
      "  convolution_param { num_output: 1 kernel_size: 1 engine: CUDNN }\n"
      "  quantization_param { bw_layer_in: 8 } }\n",
      "net");
  const std::vector<std::string> lines = warnings(file.upgrade.notes);
  ASSERT_EQ(lines.size(), 2u) << join(lines, "\n");
  EXPECT_EQ(lines[0], "net:2:52: engine: MKLDNN has no effect here: the fastest way is measured");
  EXPECT_EQ(lines[1], "net:3:3: quantization_param has no effect here (2 times)");
}

TEST(NoEffect, InsideOldLayersAndSolvers) {
  const NetFile net = parse_net_text(
      "layers { name: \"a\" type: CONVOLUTION convolution_param { num_output: 1\n"
      "  kernel_size: 1 engine: MKL2017 } }\n",
      "old");
  const std::vector<std::string> lines = warnings(net.upgrade.notes);
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(lines[0], "old:2:18: engine: MKL2017 has no effect here: the fastest way is measured");
  const SolverFile solver = parse_solver_text(
      "base_lr: 1\nlr_policy: \"fixed\"\nrichness: 4\nnet_param { richness: 5 }\n", "solver");
  EXPECT_EQ(warnings(solver.notes),
            std::vector<std::string>{
                "solver:3:1: richness has no effect here: the workspace budget decides"});
  EXPECT_EQ(warnings(inner_net(solver, "net_param").upgrade.notes),
            std::vector<std::string>{
                "solver:4:13: richness has no effect here: the workspace budget decides"});
}

}  // namespace no_effect_test
}  // namespace crema::tests
