// crema replay: iterations of runs of many kinds come out again, bit for bit.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <regex>

#include "solver/sequence_net.h"
#include "tools/replayed.h"

namespace crema::tests {
namespace replay_test {

// "2.5 layer by layer; the run recorded 2.5": both.
std::pair<double, double> losses_in(const std::string& text) {
  std::smatch match;
  const std::regex pattern("loss (\\S+) layer by layer; the run recorded (\\S+),");
  if (!std::regex_search(text, match, pattern)) return {0, 1};
  return {std::stod(match[1]), std::stod(match[2])};
}

struct Row {
  const char* name;
  std::string net, solver;
  std::string flags = {};
};

std::vector<Row> rows() {
  const std::string fixed = "base_lr: 0.05 lr_policy: \"fixed\" ";
  return {
      {"augmentation and dropout", kSmallNet, kRates},
      {"BatchNorm", kData + kHead + kNorm + kTail, kRates},
      {"iter_size", kSmallNet, kRates + "iter_size: 4"},
      {"average of the weights", kSmallNet, kRates + "ema_decay: 0.9"},
      {"average_loss", kSmallNet, kRates + "average_loss: 20"},
      {"Adam", kSmallNet,
       "type: \"Adam\" momentum2: 0.99 momentum: 0.9 base_lr: 0.002 lr_policy: \"fixed\""},
      {"multistep", kSmallNet,
       "base_lr: 0.05 momentum: 0.9 lr_policy: \"multistep\" gamma: 0.1 stepvalue: 4 stepvalue: "
       "19"},
      {"plateau", kSmallNet, "base_lr: 0.05 lr_policy: \"plateau\" gamma: 0.5 plateau_winsize: 3"},
      {"clipped gradients", kSmallNet, kRates + "clip_gradients: 0.5"},
      {"debug_info", kSmallNet, kRates + "debug_info: true"},
      {"no display", kSmallNet, kRates + "display: 0"},
      {"each displayed", kSmallNet, kRates + "display: 1"},
      {"a state from pass to pass", kSequence, fixed},
      {"nothing fused", kSmallNet, kRates, "-off fuse"},
      {"plain kernels", kSmallNet, kRates, "-implementation plain"},
      {"integers from an iteration on", kSmallNet, kRates + "quantize { start: 10 }"},
      {"pruning", kSmallNet,
       kRates + "prune { kind: WEIGHTS sparsity: 0.5 start: 5 end: 15 interval: 5 }"},
      {"epochs", kSmallNet, kRates + "max_epoch: 2"},
  };
}

TEST(Replay, GivesTheBitsOfTheRun) {
  uint64_t number = 1;
  for (const Row& row : rows()) {
    SCOPED_TRACE(row.name);
    const Folder folder;
    std::string solver = row.solver;
    prepare(folder, row.net, solver);
    if (solver.find("display") != std::string::npos ||
        solver.find("max_epoch") != std::string::npos) {
      std::string text = folder.read("solver.prototxt");
      const std::string twice =
          solver.find("display") != std::string::npos ? "display: 3 " : "max_iter: 30 ";
      folder.write("solver.prototxt", text.replace(text.find(twice), twice.size(), ""));
    }
    const Outcome trained = run(folder, "crema train -solver solver.prototxt -run r " + row.flags);
    ASSERT_EQ(trained.code, 0) << trained.err;
    const Outcome again = run(folder, "crema reproduce r");
    EXPECT_EQ(again.code, 0);
    expect_part(everything(again), std::string("identical: "));
    for (int i = 0; i < 2; ++i) {
      number = number * 6364136223846793005u + 1442695040888963407u;
      const int iteration = static_cast<int>((number >> 33) % 29);
      const Outcome outcome = run(folder, cat("crema replay -run r -iteration ", iteration));
      ASSERT_EQ(outcome.code, 0) << outcome.err;
      expect_part(everything(outcome), kBits);
      const auto [found, recorded] = losses_in(everything(outcome));
      EXPECT_NEAR(found, recorded, 1e-4 * std::abs(recorded)) << iteration;
      EXPECT_TRUE(folder.has(cat("r/replay/iteration_", iteration, "/index.html")));
    }
  }
}

// The run of a program that was killed, or told to stop, and went on.
TEST(Replay, OpensIterationsOfAResumedRun) {
  const Folder folder;
  prepare(folder, kSmallNet, kRates);
  ASSERT_EQ(
      run(folder, std::string(kTrain) + "-set max_iter=13 -set snapshot_after_train=false").code,
      0);
  ASSERT_EQ(run(folder, std::string(kTrain) + "-snapshot auto").code, 0);
  for (const int iteration : {2, 9, 12, 13, 27}) {
    const Outcome outcome = run(folder, cat("crema replay -run r -iteration ", iteration));
    expect_part(everything(outcome), kBits);
  }
  // With another rate from there on: what came before was made by another solver.
  ASSERT_EQ(
      run(folder, std::string(kTrain) + "-snapshot auto -set max_iter=40 -set base_lr=0.01").code,
      0);
  expect_part(everything(run(folder, "crema replay -run r -iteration 35")), kBits);
  expect_part(everything(run(folder, "crema replay -run r -iteration 20")),
              "Not the run's bits: equal up to iteration 16");
}

// A record of infinite values: the third batch of each epoch of 5 * 4 records meets it.
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

TEST(Replay, NamesTheRecordBehindAJump) {
  const Folder folder;
  std::string rows = "a,b,label\n";
  for (int i = 0; i < 240; ++i) {
    const double x = std::sin(i * 7.0), y = std::sin(i * 3.0 + 1);
    rows += i == 170 ? "1500,-900,1\n" : cat(x, ",", y, ",", x + y > 0 ? 1 : 0, "\n");
  }
  folder.write("rows.csv", rows);
  ASSERT_EQ(run(folder, "crema convert_csv -label label rows.csv records").code, 0);
  folder.write("net.prototxt",
               "layer { name: \"data\" type: \"Data\" top: \"data\" top: \"label\" data_param { "
               "source: \"records\" "
               "backend: LMDB batch_size: 6 } }\n"
               "layer { name: \"ip\" type: \"InnerProduct\" bottom: \"data\" top: \"ip\" "
               "inner_product_param { num_output: 2 "
               "weight_filler { type: \"xavier\" } } }\n"
               "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"ip\" bottom: \"label\" "
               "top: \"loss\" }\n");
  folder.write("solver.prototxt",
               "net: \"net.prototxt\" base_lr: 0.05 lr_policy: \"fixed\" max_iter: 40 display: 10 "
               "snapshot_prefix: \"s\"\n");
  const Outcome trained = run(folder, kTrain);
  ASSERT_EQ(trained.code, 0);
  std::smatch match;
  const std::regex advice("To see its samples: (crema replay [^\n]*)");
  ASSERT_TRUE(std::regex_search(trained.err, match, advice)) << trained.err;
  EXPECT_EQ(match[1], "crema replay -run r -iteration 28");
  const Outcome opened = run(folder, match[1]);
  const size_t second_line = opened.out.find('\n') + 1;
  EXPECT_EQ(opened.out.substr(second_line, 19), "records, record 170") << opened.out;
  ASSERT_EQ(run(folder, "crema report r -output report.html").code, 0);
  expect_part(folder.read("report.html"), "The loss of iteration 28 was");
}

// As detectors read them.
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

// Relative paths count from where the run was started, and the folder may be elsewhere now.
TEST(Replay, FindsItsFilesFromAnywhere) {
  const Folder folder;
  prepare(folder, kSmallNet, kRates);
  ASSERT_EQ(run(folder, kTrain).code, 0);
  std::filesystem::create_directories(folder.file("far/away"));
  std::filesystem::rename(folder.file("r"), folder.file("far/r"));
  expect_part(everything(run(folder, "crema replay -run ../r -iteration 20", "far/away")), kBits);
  expect_part(everything(run(folder, "crema reproduce far/r")), "identical");
}

TEST(Replay, RefusesWhatItCannotDo) {
  const Folder folder;
  prepare(folder, kSmallNet, kRates);
  ASSERT_EQ(run(folder, kTrain).code, 0);
  struct Wrong {
    const char* command;
    const char* message;
  };
  const Wrong wrong[] = {
      {"crema replay -run r", "an iteration is needed"},
      {"crema replay -iteration 3", "a run is needed"},
      {"crema replay -run r -iteration 30", "has no iteration 30: its last one is 29"},
      {"crema replay -run r -iteration 9999999999", "has no iteration 9999999999"},
      {"crema replay -run r -iteration 5 -until 4", "-until 4: expected 5 to"},
      {"crema replay -run nowhere -iteration 3", "nowhere: has no run.json"},
      {"crema replay -run r -iteration 3 -dump cnov", "cnov"},
      {"crema replay -run r -iteration 3 -output records", "-output"},
      {"crema reproduce -iterations -1 r", "-iterations -1"},
      {"crema bisect r nowhere", "nowhere: has no run.json"},
  };
  folder.write("records/iteration_3/mine", "");
  for (const Wrong& one : wrong) {
    const Outcome outcome = run(folder, one.command);
    EXPECT_EQ(outcome.code, 1) << one.command;
    ASSERT_EQ(outcome.errors().size(), 1u) << one.command << outcome.err;
    expect_part(outcome.errors()[0], one.message);
  }
  EXPECT_FALSE(folder.has("r/replay"));
  folder.write("r/iterations.csv", "iteration,loss,weights,parameters\n0,no,,\n");
  expect_part(run(folder, "crema replay -run r -iteration 0").err,
              "iterations.csv:2: expected iteration,loss");
}

}  // namespace replay_test
}  // namespace crema::tests
