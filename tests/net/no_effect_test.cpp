// Fields that a file has for other programs, and "engine: CUDNN" where there is no cuDNN, are
// reported once each, with their position.
#include <gtest/gtest.h>

#include "net/graph/engine_note.h"
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
      "  multinode { num_nodes: 8 } }\n"
      "layer { name: \"b\" type: \"Convolution\"\n"
      "  convolution_param { num_output: 1 kernel_size: 1 engine: CUDNN }\n"
      "  multinode { num_nodes: 8 } }\n",
      "net");
  const std::vector<std::string> lines = warnings(file.upgrade.notes);
  ASSERT_EQ(lines.size(), 2u) << join(lines, "\n");
  EXPECT_EQ(lines[0], "net:2:52: engine: MKLDNN has no effect here: the fastest way is measured");
  EXPECT_EQ(lines[1], "net:3:3: multinode has no effect here (2 times)");
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

struct Row {
  const char *name, *layers, *expected;
};

const Row kRows[] = {
    {"no engine", "layer { name: \"a\" type: \"ReLU\" }", ""},
    {"other engines",
     "layer { name: \"a\" type: \"Convolution\" convolution_param { engine: CAFFE } }\n"
     "layer { name: \"b\" type: \"ReLU\" relu_param { engine: DEFAULT } }",
     ""},
    {"one layer",
     "layer { name: \"a\" type: \"ReLU\" }\n"
     "layer { name: \"b\" type: \"Pooling\" pooling_param { engine: CUDNN } }",
     "net:2:1: engine: CUDNN has no effect here: this build has no cuDNN, so our own kernels and "
     "cuBLAS compute"},
    {"several",
     "layer { name: \"a\" type: \"LRN\" lrn_param { engine: CUDNN } }\n"
     "layer { name: \"b\" type: \"TanH\" tanh_param { engine: CAFFE } }\n"
     "layer { name: \"c\" type: \"BatchNorm\" batch_norm_param { engine: CUDNN } }",
     "net:1:1: engine: CUDNN has no effect here: this build has no cuDNN, so our own kernels and "
     "cuBLAS compute (2 layers)"},
};

TEST(EngineNote, NamesTheFirstLayerAndCounts) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.name);
    const NetFile file = parse_net_text(row.layers, "net");
    const auto where = [&](int layer) { return file.where(layer); };
    EXPECT_EQ(note_on_cudnn_engine(file.net, where), row.expected);
    const std::string expected = row.expected;
    EXPECT_EQ(note_on_cudnn_engine(file.net),
              expected.empty() ? expected : expected.substr(sizeof "net:1:1: " - 1));
  }
}

}  // namespace no_effect_test
}  // namespace crema::tests
