// Which batches of a test a rank runs.
#include "solver/test/test_batches.h"

#include <gtest/gtest.h>

#include "fixtures.h"
#include "ranks.h"
#include "solver/sequence_net.h"

namespace crema::tests {
namespace test_batches_test {

// Seven of them, by the second of three ranks.
TEST(TestBatches, AreSharedWhereNoneFollowsFromAnother) {
  const Folder folder;
  const auto norm = [](const char* field) {
    return cat(R"(layer { name: "bn" type: "BatchNorm" bottom: "x" top: "n" batch_norm_param { )",
               field, " } }");
  };
  const std::string data = R"(layer { name: "data" type: "DummyData" top: "x" top: "y"
    dummy_data_param { shape { dim: 6 dim: 4 } data_filler { type: "gaussian" std: 1 } } })";
  struct Row {
    const char* what;
    std::string net;
    bool shared;
  };
  const Row rows[] = {
      {"nothing that follows", kNet, true},
      {"recurrent", kSequence, false},
      {"statistics of training", data + norm(""), true},
      {"statistics of training, explicitly", data + norm("use_global_stats: true"), true},
      {"statistics that tests change", data + norm("use_global_stats: false"), false},
      {"a file of all batches",
       cat(data, R"(layer { name: "out" type: "HDF5Output" bottom: "x" bottom: "y"
            hdf5_output_param { file_name: ")",
           folder.file("out.h5"), "\" } }"),
       false},
      {"files of all detections", R"(
        layer { name: "in" type: "Input" top: "loc" top: "conf" top: "prior" input_param {
          shape { dim: 1 dim: 8 } shape { dim: 1 dim: 4 } shape { dim: 1 dim: 2 dim: 8 } } }
        layer { name: "out" type: "DetectionOutput" bottom: "loc" bottom: "conf" bottom: "prior" top: "out"
          detection_output_param { num_classes: 2 save_output_param { output_directory: "found" } } })",
       false},
  };
  OnlyRank second(1, 3);
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    Context context(Device::cpu);
    NetOptions options;
    options.state.set_phase(TEST);
    Net net(context, parse_net_text(row.net, "net.prototxt").net, options);
    const TestBatches alone = test_batches(net, 7);
    EXPECT_EQ(alone.first, 0);
    EXPECT_EQ(alone.end, 7);
    EXPECT_FALSE(alone.shared);
    context.set_world(&second);
    const TestBatches batches = test_batches(net, 7);
    EXPECT_EQ(batches.shared, row.shared);
    EXPECT_EQ(batches.first, row.shared ? 2 : 0);
    EXPECT_EQ(batches.end, row.shared ? 4 : 7);
  }
}

}  // namespace test_batches_test
}  // namespace crema::tests
