// Ranks under mpirun, on CPUs, as a user starts them: the curve of one rank, the same bits when
// repeated, snapshots that another number of ranks can resume, one log, one message.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <regex>

#include "solver/fixtures.h"
#include "tools/program.h"

namespace crema::tests {
namespace mpirun_test {

constexpr const char* kHead = "name: \"small\"\n";
constexpr const char* kBody = R"(
layer { name: "conv1" type: "Convolution" bottom: "x" top: "conv1"
  convolution_param { num_output: 6 kernel_size: 5 weight_filler { type: "xavier" } } }
layer { name: "bn" type: "BatchNorm" bottom: "conv1" top: "conv1" batch_norm_param { sync_bn: true } }
layer { name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1" pooling_param { kernel_size: 2 stride: 2 } }
layer { name: "ip1" type: "InnerProduct" bottom: "pool1" top: "ip1"
  inner_product_param { num_output: 30 weight_filler { type: "xavier" } } }
layer { name: "relu" type: "ReLU" bottom: "ip1" top: "ip1" }
layer { name: "drop" type: "Dropout" bottom: "ip1" top: "ip1" }
layer { name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2"
  inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "y" top: "loss" }
layer { name: "accuracy" type: "Accuracy" bottom: "ip2" bottom: "y" top: "accuracy" include { phase: TEST } }
)";

class Mpirun : public testing::Test {
 protected:
  void SetUp() override {
    if (std::system("mpirun --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "no mpirun here";
    if (run_shell(folder, "ls \"$TOOLS\"/../lib/libcrema_mpi.so").code != 0)
      GTEST_SKIP() << "built without MPI";
    const std::string source =
        image_database(folder, 80, {1, 12, 12}, [](int64_t i) { return static_cast<int>(i % 3); });
    folder.write("net.prototxt",
                 cat(kHead, "layer { name: \"data\" type: \"Data\" top: \"x\" top: \"y\" ",
                     "transform_param { scale: 0.004 mirror: true } data_param { source: \"",
                     source, "\" backend: LMDB batch_size: 20 shuffle: true } }\n", kBody));
    folder.write("solver.prototxt",
                 "net: \"net.prototxt\" base_lr: 0.02 lr_policy: \"fixed\" momentum: 0.9 "
                 "random_seed: 2 max_iter: 12 display: 2 test_iter: 5 test_interval: 6 snapshot: 5 "
                 "snapshot_prefix: \"small\" solver_mode: CPU\n");
  }

  // With 0 ranks: without mpirun.
  Outcome train(int ranks, const std::string& flags) const {
    const std::string start =
        ranks == 0 ? "" : cat("mpirun --allow-run-as-root --oversubscribe -n ", ranks, " ");
    return run_shell(folder, cat("rm -f metrics.jsonl; OMP_NUM_THREADS=1 ", start,
                                 "\"$TOOLS\"/crema train -solver solver.prototxt ", flags));
  }

  // The log's losses and test results, line by line.
  static std::vector<double> numbers(const Outcome& outcome) {
    static const std::regex line("(?:loss|accuracy|lr) = ([-+.0-9e]+)");
    std::vector<double> found;
    for (std::sregex_iterator at(outcome.err.begin(), outcome.err.end(), line), end; at != end;
         ++at)
      found.push_back(std::stod((*at)[1]));
    return found;
  }

  static void expect_near(const Outcome& outcome, const Outcome& expected) {
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const std::vector<double> found = numbers(outcome), wanted = numbers(expected);
    ASSERT_EQ(found.size(), wanted.size()) << outcome.err;
    ASSERT_GT(found.size(), 10u);
    for (size_t i = 0; i < wanted.size(); ++i)
      EXPECT_NEAR(found[i], wanted[i], 1e-4 * (1 + std::abs(wanted[i]))) << i;
  }

  std::string weights() const { return folder.read("small_iter_12.caffemodel"); }

  const Folder folder;
};

TEST_F(Mpirun, TheCurveOfOneRank) {
  const Outcome alone = train(0, "");
  ASSERT_EQ(alone.code, 0) << alone.err;
  for (const int ranks : {2, 3}) {
    SCOPED_TRACE(ranks);
    expect_near(train(ranks, "-batch_mode total"), alone);
    const std::string first = weights();
    train(ranks, "-batch_mode total");
    EXPECT_EQ(weights(), first);  // the same bits
  }
}

TEST_F(Mpirun, ASnapshotGoesOnWithAnotherNumberOfRanks) {
  const Outcome none = train(2, "-batch_mode total -snapshot auto");
  ASSERT_EQ(none.code, 0) << none.err;
  const Outcome two = train(2, "-batch_mode total");
  ASSERT_EQ(two.code, 0) << two.err;
  EXPECT_EQ(train(2, "-batch_mode total -snapshot auto").code, 0);  // the end is there already
  const std::string flags = "-batch_mode total -snapshot small_iter_5.solverstate";
  const Outcome one = train(0, "-snapshot small_iter_5.solverstate");
  ASSERT_EQ(one.code, 0) << one.err;
  for (const int ranks : {2, 3}) {
    SCOPED_TRACE(ranks);
    expect_near(train(ranks, flags), one);
  }
}

TEST_F(Mpirun, OneRankTellsTheUser) {
  const Outcome outcome = train(2, "");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  int said = 0, iterations = 0;
  for (const std::string& line : outcome.messages()) {
    said += line.find("Training with 2 ranks through Open MPI") != std::string::npos;
    iterations += line.rfind("Iteration 4 ", 0) == 0;
  }
  EXPECT_EQ(said, 1) << outcome.err;
  EXPECT_EQ(iterations, 1) << outcome.err;
  expect_part(folder.read("metrics.jsonl"), "\"kind\":\"end\"");
}

TEST_F(Mpirun, ARunFolderIsRank0s) {
  folder.write(
      "solver.prototxt",
      "net: \"net.prototxt\" base_lr: 0.02 lr_policy: \"fixed\" random_seed: 2 max_iter: 6 "
      "display: 2 test_iter: 5 test_interval: 3 snapshot: 4 solver_mode: CPU\n");
  const Outcome outcome = train(2, "-run first -tensorboard true");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_part(folder.read("first/metrics.jsonl"), "\"kind\":\"end\"");
  const Outcome more = train(2, "-run first -snapshot auto -set max_iter=8");
  EXPECT_EQ(more.code, 0) << more.err;
}

// Each with one message, whichever rank is at fault.
TEST_F(Mpirun, RanksThatDiffer) {
  folder.write("other.prototxt",
               "net: \"net.prototxt\" base_lr: 0.03 lr_policy: \"fixed\" "
               "random_seed: 2 max_iter: 12 solver_mode: CPU\n");
  folder.write("broken.prototxt", "net: \"net.prototxt\" base_lr: 0.03 lr_pollicy: \"fixed\"\n");
  const auto differ = [&](const std::string& of_rank_1) {
    const Outcome outcome = run_shell(
        folder, cat("mpirun --allow-run-as-root --oversubscribe -n 2 sh -c 'if [ "
                    "$OMPI_COMM_WORLD_RANK = 1 ]; ",
                    "then s=", of_rank_1,
                    "; else s=solver.prototxt; fi; exec \"$TOOLS\"/crema train -solver ", "$s'"));
    EXPECT_NE(outcome.code, 0);
    EXPECT_EQ(outcome.errors().size(), 1u) << outcome.err;
    return outcome.errors().empty() ? "" : outcome.errors()[0];
  };
  expect_part(differ("other.prototxt"), "has another solver than rank 0");
  expect_part(differ("broken.prototxt"), "lr_pollicy");
  const auto refused = [&](const std::string& flags) {
    const Outcome outcome = train(2, flags);
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(outcome.errors().size(), 1u) << outcome.err;
    return outcome.errors().empty() ? "" : outcome.errors()[0];
  };
  expect_part(refused("-batch_mode half"), "-batch_mode half: expected per_gpu");
  expect_part(refused("-rank_timeout 0"), "-rank_timeout is 0");
  folder.write("solver.prototxt", folder.read("broken.prototxt"));
  expect_part(differ("broken.prototxt"), "lr_pollicy");  // all ranks find it, one says so
}

}  // namespace mpirun_test
}  // namespace crema::tests
