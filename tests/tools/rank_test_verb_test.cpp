// `crema test` under mpirun: ranks share the batches, and rank 0 prints what one rank would.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "solver/fixtures.h"
#include "tools/program.h"

namespace crema::tests {
namespace rank_test_verb_test {

class TestVerbOfRanks : public testing::Test {
 protected:
  void SetUp() override {
    if (std::system("mpirun --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "no mpirun here";
    if (run_shell(folder, "ls \"$TOOLS\"/../lib/libcrema_mpi.so").code != 0)
      GTEST_SKIP() << "built without MPI";
    const std::string source = image_database(
        folder, 47, {1, 4, 4}, [](int64_t i) { return static_cast<int>(i * i % 7 % 3); });
    folder.write("net.prototxt", cat(R"(
      layer { name: "data" type: "Data" top: "x" top: "y" transform_param { scale: 0.004 }
        data_param { source: ")",
                                     source, R"(" backend: LMDB batch_size: 10 } }
      layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip" inner_product_param { num_output: 3
        weight_filler { type: "gaussian" std: 0.5 } } }
      layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "y" top: "loss" }
      layer { name: "accuracy" type: "Accuracy" bottom: "ip" bottom: "y" top: "accuracy"
        include { phase: TEST } })"));
    folder.write("solver.prototxt",
                 "net: \"net.prototxt\" base_lr: 0.02 lr_policy: \"fixed\" random_seed: 2 "
                 "max_iter: 1 snapshot_prefix: \"small\" solver_mode: CPU\n");
    const Outcome trained = run_shell(folder, "\"$TOOLS\"/crema train -solver solver.prototxt");
    ASSERT_EQ(trained.code, 0) << trained.err;
  }

  // With 0 ranks: without mpirun.
  Outcome test(int ranks, const std::string& flags) const {
    const std::string start =
        ranks == 0 ? "" : cat("mpirun --allow-run-as-root --oversubscribe -n ", ranks, " ");
    return run_shell(folder, cat("OMP_NUM_THREADS=1 ", start, "\"$TOOLS\"/crema test -model ",
                                 "net.prototxt -weights small_iter_1.caffemodel ", flags));
  }

  // The messages about the test, except for the records' starting over, which one rank may not
  // notice.
  static std::vector<std::string> said(const Outcome& outcome) {
    std::vector<std::string> all = outcome.messages();
    all.erase(all.begin(), std::find_if(all.begin(), all.end(), [](const std::string& line) {
                return starts_with(line, "Running for ");
              }));
    std::erase(all, "Restarting data prefetching from start.");
    return all;
  }

  const Folder folder;
};

TEST_F(TestVerbOfRanks, PrintWhatOneRankPrints) {
  for (const char* flags :
       {"-iterations 7 -metrics confusion,auc,top2", "-epoch", "-iterations 2"}) {
    const Outcome alone = test(0, flags);
    ASSERT_EQ(alone.code, 0) << alone.err;
    EXPECT_GT(said(alone).size(), 5u) << alone.err;
    for (const int ranks : {2, 3}) {
      SCOPED_TRACE(cat(flags, " by ", ranks, " ranks"));
      const Outcome outcome = test(ranks, flags);
      EXPECT_EQ(outcome.code, 0) << outcome.err;
      EXPECT_EQ(said(outcome), said(alone)) << outcome.err;
    }
  }
}

TEST_F(TestVerbOfRanks, FailWithOneMessage) {
  const std::pair<const char*, const char*> rows[] = {
      {"-phase TRAIN", "several ranks can test in phase TEST only"},
      {"-metrics f2", "there is no \"f2\""},
      // Of every batch; that of the first one is told.
      {"-iterations 4 -set 'layer[data].transform_param.scale=inf'", "the results of batch 0 "},
  };
  for (const auto& [flags, message] : rows) {
    SCOPED_TRACE(flags);
    const Outcome outcome = test(2, flags);
    EXPECT_NE(outcome.code, 0);
    ASSERT_EQ(outcome.errors().size(), 1u) << outcome.err;
    expect_part(outcome.errors()[0], message);
  }
}

}  // namespace rank_test_verb_test
}  // namespace crema::tests
