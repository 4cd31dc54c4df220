// "engine: CUDNN" where there is no cuDNN.
#include "net/graph/engine_note.h"

#include <gtest/gtest.h>

#include "net/prototxt/prototxt.h"
#include "support.h"

namespace crema::tests {
namespace engine_note_test {

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

}  // namespace engine_note_test
}  // namespace crema::tests
