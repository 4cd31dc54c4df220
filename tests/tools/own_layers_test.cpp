// -layers: layers of the user's own in the program.
#include <gtest/gtest.h>

#include "tools/program.h"

namespace crema::tests {
namespace own_layers_test {

constexpr const char* kNet = R"(
  layer { name: "data" type: "DummyData" top: "x" top: "y" dummy_data_param {
    shape { dim: 4 dim: 3 } shape { dim: 4 dim: 2 }
    data_filler { type: "constant" value: 2.75 } data_filler { type: "constant" value: 1 } } }
  layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip"
    inner_product_param { num_output: 2 weight_filler { type: "constant" value: 1 } } }
  layer { name: "own" type: "Fraction" bottom: "ip" top: "own" }
  layer { name: "loss" type: "EuclideanLoss" bottom: "own" bottom: "y" top: "loss" }
)";

TEST(OwnLayers, TrainAndTestInTheProgram) {
  const Folder folder;
  folder.write("net.prototxt", kNet);
  folder.write("solver.prototxt",
               "net: \"net.prototxt\" base_lr: 0.001 lr_policy: \"fixed\" max_iter: 5 "
               "test_iter: 1 test_interval: 5 snapshot_prefix: \"own\"");
  const std::string layers = "-layers " CREMA_OWN_LAYERS;
  const Outcome trained = run(folder, "crema train -solver solver.prototxt " + layers);
  ASSERT_EQ(trained.code, 0) << trained.err;
  // 3 * 2.75 = 8.25, and (0.25 - 1)^2 for two outputs, halved.
  EXPECT_NE(trained.err.find("loss = 0.5625"), std::string::npos) << trained.err;
  const Outcome tested =
      run(folder,
          "crema test -model net.prototxt -weights own_iter_5.caffemodel -iterations 1 " + layers);
  ASSERT_EQ(tested.code, 0) << tested.err;
  const Outcome drawn = run(folder, "crema draw net.prototxt -output net.svg " + layers);
  EXPECT_EQ(drawn.code, 0) << drawn.err;
  EXPECT_EQ(drawn.err.find("do not run here"), std::string::npos) << drawn.err;
}

TEST(OwnLayers, AreMissedByName) {
  const Folder folder;
  folder.write("net.prototxt", kNet);
  folder.write("text.so", "no library");
  struct Row {
    std::string flags, part;
  };
  for (const Row& row :
       {Row{"", "unknown layer type \"Fraction\""}, Row{"-layers none.so", "./none.so"},
        Row{"-layers text.so", "./text.so"}, Row{"-layers " CREMA_FAKE_NVML, "registers no layers"},
        Row{"-layers " CREMA_OWN_LAYERS "," CREMA_OWN_LAYERS, "registers no layers"}}) {
    const Outcome outcome =
        run(folder, "crema time -model net.prototxt -iterations 1 " + row.flags);
    EXPECT_EQ(outcome.code, 1) << row.flags;
    ASSERT_EQ(outcome.errors().size(), 1u) << outcome.err;
    EXPECT_NE(outcome.errors()[0].find(row.part), std::string::npos) << outcome.err;
  }
}

}  // namespace own_layers_test
}  // namespace crema::tests
