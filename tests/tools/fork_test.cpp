// Runs that begin where another was, and what replays do with their data.
#include <gtest/gtest.h>

#include <filesystem>

#include "tools/small_run.h"

namespace crema::tests {
namespace fork_test {

using namespace small_run;  // NOLINT(google-build-using-namespace)

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
                cat("are equal, bit for bit, in ", 30 - iteration, " iterations"));
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

TEST(Replay, OpensWhatDiverged) {
  const Folder folder;
  folder.write("rows.csv",
               "a,b,label\n1,0,0\n0,1,1\n1,1,0\n0,0.5,1\n1e38,1e38,0\n0.5,0,0\n0,1,1\n1,0.5,0\n");
  ASSERT_EQ(run(folder, "crema convert_csv -label label rows.csv records").code, 0);
  const std::string net =
      "layer { name: \"data\" type: \"Data\" top: \"data\" top: \"label\" data_param { source: "
      "\"records\" backend: LMDB "
      "batch_size: 2 } }\n"
      "layer { name: \"ip\" type: \"InnerProduct\" bottom: \"data\" top: \"ip\" "
      "inner_product_param { num_output: 2 "
      "weight_filler { type: \"constant\" value: 3 } } }\n"
      "layer { name: \"square\" type: \"Power\" bottom: \"ip\" top: \"square\" power_param { "
      "power: 2 } }\n"
      "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"square\" bottom: \"label\" top: "
      "\"loss\" }\n";
  folder.write("net.prototxt", net);
  const std::string solver =
      "net: \"net.prototxt\" base_lr: 0.001 lr_policy: \"fixed\" max_iter: 20 display: 5 snapshot: "
      "1 snapshot_prefix: \"s\"\n";
  folder.write("solver.prototxt", solver);
  EXPECT_EQ(run(folder, kTrain).code, 1);
  const Outcome last = run(folder, "crema replay -run r -iteration 2");
  EXPECT_EQ(last.code, 0) << last.err;
  expect_part(last.out, "records, record 4 (key \"00000004\")");
  EXPECT_LT(last.out.find("record 4 "), last.out.find("record 5 ")) << last.out;

  folder.write("solver.prototxt", solver + "on_divergence: SKIP skip_most: 9\n");
  ASSERT_EQ(run(folder, "crema train -solver solver.prototxt -run skipped -set random_seed=1").code,
            0);
  for (const int iteration : {1, 2, 3, 13})
    expect_part(everything(run(folder, cat("crema replay -run skipped -iteration ", iteration))),
                kBits);

  // Without a snapshot between, it goes back to the start, with the data behind the bad ones.
  folder.write("solver.prototxt",
               solver + "on_divergence: ROLLBACK rollback_most: 9 snapshot: 0 max_iter: 3\n");
  std::string text = folder.read("solver.prototxt");
  for (const char* twice : {"max_iter: 20 ", "snapshot: 1 "})
    text.replace(text.find(twice), std::string(twice).size(), "");
  folder.write("solver.prototxt", text);
  const Outcome back =
      run(folder, "crema train -solver solver.prototxt -run back -set random_seed=1");
  ASSERT_EQ(back.code, 0) << back.err;
  expect_part(back.err, "Back to iteration 0");
  for (const int iteration : {0, 1, 2})
    expect_part(everything(run(folder, cat("crema replay -run back -iteration ", iteration))),
                kBits);
}

TEST(Replay, OpensPicturesOfManySizes) {
  const Folder folder;
  prepare(folder, kHead + kTail, kRates);
  folder.copy_golden("formats/images", "images");
  folder.copy_golden("formats/list_var.txt", "list.txt");
  folder.write("net.prototxt",
               "layer { name: \"data\" type: \"ImageData\" top: \"data\" top: \"label\" "
               "image_data_param { source: \"list.txt\" "
               "root_folder: \"images/\" batch_size: 1 } transform_param { scale: 0.004 } }\n" +
                   kHead +
                   "layer { name: \"pool\" type: \"Pooling\" bottom: \"conv\" top: \"pool\" "
                   "pooling_param { pool: AVE "
                   "global_pooling: true } }\n"
                   "layer { name: \"ip\" type: \"InnerProduct\" bottom: \"pool\" top: \"ip\" "
                   "inner_product_param { num_output: 21 "
                   "weight_filler { type: \"xavier\" } } }\n"
                   "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"ip\" bottom: "
                   "\"label\" top: \"loss\" }\n");
  const Outcome trained = run(folder, kTrain);
  ASSERT_EQ(trained.code, 0) << trained.err;
  for (const int iteration : {0, 3, 10, 29}) {
    const Outcome outcome = run(folder, cat("crema replay -run r -iteration ", iteration));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    expect_part(everything(outcome), kBits);
  }
}

TEST(Replay, WritesTensors) {
  const Folder folder;
  prepare(folder, kSmallNet, kRates);
  ASSERT_EQ(run(folder, kTrain).code, 0);
  ASSERT_EQ(
      run(folder,
          "crema replay -run r -iteration 5 -until 6 -dump conv,conv:grad,ip/0 -output opened")
          .code,
      0);
  for (const char* name :
       {"conv.npy", "conv.grad.npy", "ip.0.npy", "index.html", "iteration.json"}) {
    EXPECT_TRUE(folder.has(cat("opened/iteration_5/", name))) << name;
    EXPECT_TRUE(folder.has(cat("opened/iteration_6/", name))) << name;
  }
  expect_part(folder.read("opened/iteration_5/conv.npy").substr(0, 100), "(5, 6, 3, 3)");
}

}  // namespace fork_test
}  // namespace crema::tests
