// `crema test -epoch`, and runs whose solvers count epochs.
#include <gtest/gtest.h>

#include <map>

#include "data/databases/database_writer.h"
#include "tools/program.h"

namespace crema::tests {
namespace whole_epoch_test {

constexpr int kRecords = 23;

// A net with batches of 7 of 23 records, and its weights after two epochs.
void prepare(const Folder& folder) {
  const std::unique_ptr<DatabaseWriter> writer =
      create_database(folder.file("db"), DataParameter::LMDB);
  for (int i = 0; i < kRecords; ++i) {
    Datum datum;
    datum.set_channels(1);
    datum.set_height(2);
    datum.set_width(2);
    for (int k = 0; k < 4; ++k) datum.mutable_data()->push_back(static_cast<char>(i * 37 + k * 11));
    datum.set_label(i * i % 3);
    writer->put(numbered_key(i, 4), datum);
  }
  writer->finish();
  folder.write("net.prototxt", R"(
layer { name: "data" type: "Data" top: "data" top: "label" transform_param { scale: 0.01 }
  data_param { source: "db" backend: LMDB batch_size: 7 } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" inner_product_param { num_output: 3
  weight_filler { type: "gaussian" std: 1 } } }
layer { name: "acc" type: "Accuracy" bottom: "ip" bottom: "label" top: "acc" }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
)");
  folder.write("solver.prototxt",
               "net: \"net.prototxt\"\nbase_lr: 0.01\nlr_policy: \"step\"\ngamma: 0.5\n"
               "stepsize_epoch: 1\nmax_epoch: 2\ntest_epoch: true\ntest_interval_epoch: 1\n"
               "snapshot_prefix: \"net\"\n");
}

// The results at the end of the log: "acc", "loss", "top2" and so on.
std::map<std::string, double> results(const Outcome& outcome) {
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  std::map<std::string, double> found;
  for (const std::string& line : outcome.messages()) {
    const size_t equal = line.find(" = ");
    if (starts_with(line, "Loss: ")) found["Loss"] = std::stod(line.substr(6));
    if (equal != line.npos && !starts_with(line, "Batch") && !starts_with(line, "Iteration"))
      found[line.substr(0, equal)] = std::stod(line.substr(equal + 3));
  }
  return found;
}

TEST(WholeEpoch, OfTheTestVerbIsTheMeanOfItsRecords) {
  const Folder folder;
  prepare(folder);
  const Outcome trained = run(folder, "crema train -solver solver.prototxt");
  ASSERT_EQ(trained.code, 0) << trained.err;
  // 46 records are 6.6 updates.
  EXPECT_TRUE(folder.has("net_iter_7.caffemodel"));
  const std::string test =
      "crema test -model net.prototxt -weights net_iter_7.caffemodel -metrics top2,f1 ";
  const Outcome whole = run(folder, test + "-epoch");
  const auto exact = results(whole),
             single = results(run(folder, test + "-iterations 23 -set "
                                                 "'layer[data].data_param.batch_size=1'"));
  expect_part(whole.err, "Running for 4 iterations.");
  for (const char* name : {"Loss", "loss", "acc", "top2", "macro_f1"}) {
    ASSERT_EQ(exact.count(name), 1u) << name;
    EXPECT_NEAR(exact.at(name), single.at(name), 1e-5 * std::max(1.0, single.at(name))) << name;
  }
  // The same as the last test of the training.
  expect_part(trained.err, cat("Test net output #0: acc = ", static_cast<float>(exact.at("acc"))));
}

TEST(WholeEpoch, ProblemsAreSaid) {
  const Folder folder;
  prepare(folder);
  ASSERT_EQ(run(folder, "crema train -solver solver.prototxt").code, 0);
  folder.write(
      "dummy.prototxt",
      "layer { name: \"data\" type: \"DummyData\" top: \"data\" dummy_data_param { shape { "
      "dim: 7 dim: 4 } } }\n"
      "layer { name: \"ip\" type: \"InnerProduct\" bottom: \"data\" top: \"ip\" "
      "inner_product_param { num_output: 3 } }\n");
  const std::string test = "crema test -weights net_iter_7.caffemodel ";
  for (const auto& [command, message] :
       {std::pair{test + "-model net.prototxt -epoch -iterations 4", "-epoch and -iterations 4:"},
        {test + "-model dummy.prototxt -epoch", "-epoch: net \"\" has no epochs"},
        {std::string(
             "crema version; echo 'test_iter: 5' >> solver.prototxt; \"$TOOLS\"/crema train "
             "-solver solver.prototxt"),
         "test_epoch is true, but test_iter is given"}}) {
    const Outcome outcome = run(folder, command);
    EXPECT_EQ(outcome.code, 1) << command;
    ASSERT_EQ(outcome.errors().size(), 1u) << outcome.err;
    expect_part(outcome.errors()[0], message);
  }
}

TEST(WholeEpoch, OtherVerbsTakeSuchSolvers) {
  const Folder folder;
  prepare(folder);
  for (const char* command :
       {"crema check -solver solver.prototxt",
        "crema lr_find -solver solver.prototxt -iterations 20",
        "crema train -solver solver.prototxt -run run",
        "crema train -solver solver.prototxt -set max_epoch=0 -set max_iter=3",
        "crema train -solver solver.prototxt -resume_check 2"}) {
    const Outcome outcome = run(folder, command);
    EXPECT_EQ(outcome.code, 0) << command << outcome.err;
  }
  // For `crema watch`.
  expect_part(folder.read("run/solver.prototxt"), "# max_iter: 7 are these epochs here");
  EXPECT_EQ(run(folder, "crema train -solver run/solver.prototxt -set snapshot_prefix=again").code,
            0);
  EXPECT_TRUE(folder.has("again_iter_7.caffemodel"));
}

}  // namespace whole_epoch_test
}  // namespace crema::tests
