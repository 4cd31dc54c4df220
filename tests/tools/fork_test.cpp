// Runs that begin where another was, and crema bisect, which says where two runs part.
#include <gtest/gtest.h>

#include <filesystem>

#include "tools/replayed.h"

namespace crema::tests {
namespace fork_test {

TEST(Fork, BeginsWhereTheOtherRunWas) {
  const Folder folder;
  prepare(folder, kSmallNet, kRates);
  ASSERT_EQ(run(folder, kTrain).code, 0);
  // One with a snapshot there, one without, and the start.
  for (const int iteration : {16, 21, 0}) {
    const std::string name = cat("f", iteration);
    const Outcome forked = run(folder, cat("crema train -run ", name, " -fork r@", iteration));
    ASSERT_EQ(forked.code, 0) << forked.err;
    EXPECT_TRUE(folder.has(cat(name, "/snapshots/s_iter_", iteration, ".solverstate")));
    expect_part(everything(run(folder, "crema bisect r " + name)),
                "are equal, bit for bit, in 30 iterations");
    expect_part(everything(run(folder, "crema reproduce " + name)),
                cat("identical: ", 30 - iteration, " losses"));
    expect_part(everything(run(folder, cat("crema replay -run ", name, " -iteration 25"))), kBits);
  }
  std::filesystem::create_directories(folder.file("far"));
  const Outcome changed = run(
      folder, "crema train -run other -fork ../r@18 -set base_lr=0.001 -set max_iter=24", "far");
  ASSERT_EQ(changed.code, 0) << changed.err;
  expect_part(changed.err, "base_lr was 0.05 and is 0.001");
  expect_part(everything(run(folder, "crema bisect r far/other")),
              "They part in iteration 18: the first that differs is the update");
  ASSERT_EQ(run(folder, "crema train -run far/other -snapshot auto -set max_iter=40").code, 0);
  expect_part(everything(run(folder, "crema replay -run far/other -iteration 39")), kBits);
  const Outcome newest = run(folder, "crema train -run more -fork r -set max_iter=33");
  ASSERT_EQ(newest.code, 0) << newest.err;
  expect_part(newest.err, "Begins at iteration 30 of");
  // What continues it names its own snapshot.
  const Outcome stopped =
      run(folder, "crema train -run late -fork r -set max_iter=40 -set base_lr=1e30");
  EXPECT_EQ(stopped.code, 1);
  expect_part(stopped.err, "-run late -snapshot");
  EXPECT_EQ(stopped.err.find("-fork r -run"), std::string::npos);
}

TEST(Fork, LeavesNothingOfWhatItRefuses) {
  const Folder folder;
  prepare(folder, kSmallNet, kRates);
  ASSERT_EQ(run(folder, kTrain).code, 0);
  const std::pair<const char*, const char*> wrong[] = {
      {"-fork r@3", "add -run DIR"},
      {"-run f -fork r@x", "-fork r@x: expected DIR@N"},
      {"-run f -fork r@31", "has done 30 iterations, and not 31"},
      {"-run f -fork nowhere@3", "nowhere: has no run.json"},
      {"-run f -fork r@3 -weights w", "leave out -weights"},
      {"-run f -fork r@3 -set base_rl=1", "base_rl"},
      {"-run f -fork r@3 -set 'layer[ip].inner_product_param.num_output=22'", "ip"},
      {"-run r -fork r@3", "r"},
  };
  for (const auto& [flags, message] : wrong) {
    const Outcome outcome = run(folder, std::string("crema train ") + flags);
    EXPECT_EQ(outcome.code, 1) << flags;
    ASSERT_EQ(outcome.errors().size(), 1u) << flags << outcome.err;
    expect_part(outcome.errors()[0], message);
    EXPECT_FALSE(folder.has("f")) << flags;
  }
}

struct Pair {
  const char* second;  // flags of the second run
  const char* words;   // what bisect says
};

TEST(Bisect, FindsWhatDiffers) {
  const Folder folder;
  prepare(folder, kSmallNet, kRates);
  ASSERT_EQ(run(folder, kTrain).code, 0);
  const Pair pairs[] = {
      {"-set random_seed=1", "are equal, bit for bit, in 30 iterations"},
      {"-set random_seed=1 -set max_iter=12", "are equal, bit for bit, in 12 iterations"},
      {"-set random_seed=2", "the initial values of conv/0"},
      {"-set random_seed=1 -set base_lr=0.04",
       "They part in iteration 0: the first that differs is the update of parameter 1 of layer "
       "\"ip\""},
      {"-set random_seed=1 -set stepsize=11",
       "They part in iteration 7: the first that differs is the update"},
      {"-set random_seed=1 -set 'layer[drop].dropout_param.dropout_ratio=0.4'",
       "the blob \"conv\" of layer \"drop\" (Dropout)"},
      {"-set random_seed=1 -set 'layer[data].transform_param.scale=0.005'",
       "the blob \"data\" of layer \"data\" (Data)"},
  };
  for (const Pair& pair : pairs) {
    std::filesystem::remove_all(folder.file("other"));
    ASSERT_EQ(
        run(folder, std::string("crema train -solver solver.prototxt -run other ") + pair.second)
            .code,
        0);
    const Outcome outcome = run(folder, "crema bisect r other");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    expect_part(everything(outcome), pair.words);
  }
}

}  // namespace fork_test
}  // namespace crema::tests
