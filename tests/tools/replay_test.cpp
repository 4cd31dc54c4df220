// crema replay, reproduce and bisect: iterations of runs of many kinds come out again, bit for bit.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <regex>

#include "solver/sequence_net.h"
#include "tools/program.h"

namespace crema::tests {
namespace replay_test {

constexpr const char* kBits = "are those of the run, bit for bit";

const std::string kData =
    "layer { name: \"data\" type: \"Data\" top: \"data\" top: \"label\" data_param { source: "
    "\"records\" backend: LMDB "
    "batch_size: 5 shuffle: true } transform_param { mirror: true crop_size: 5 scale: 0.004 } }\n";
const std::string kHead =
    "layer { name: \"conv\" type: \"Convolution\" bottom: \"data\" top: \"conv\" convolution_param "
    "{ num_output: 6 kernel_size: 3 "
    "weight_filler { type: \"xavier\" } } }\n"
    "layer { name: \"relu\" type: \"ReLU\" bottom: \"conv\" top: \"conv\" }\n";
const std::string kTail =
    "layer { name: \"drop\" type: \"Dropout\" bottom: \"conv\" top: \"conv\" }\n"
    "layer { name: \"ip\" type: \"InnerProduct\" bottom: \"conv\" top: \"ip\" inner_product_param "
    "{ num_output: 21 weight_filler { "
    "type: \"xavier\" } } }\n"
    "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"ip\" bottom: \"label\" top: "
    "\"loss\" }\n";
const std::string kNet = kData + kHead + kTail;
const std::string kNorm =
    "layer { name: \"norm\" type: \"BatchNorm\" bottom: \"conv\" top: \"conv\" batch_norm_param { "
    "scale_bias: true } }\n";

const std::string kRates =
    "base_lr: 0.05 momentum: 0.9 lr_policy: \"step\" gamma: 0.5 stepsize: 7\n";

void prepare(const Folder& folder, const std::string& net, const std::string& solver) {
  folder.write("net.prototxt", "name: \"small\"\n" + net);
  folder.copy_golden("formats/lmdb_raw", "records");
  folder.write(
      "solver.prototxt",
      "net: \"net.prototxt\" display: 3 max_iter: 30 snapshot: 8 snapshot_prefix: \"s\"\n" +
          solver);
}

std::string everything(const Outcome& outcome) { return outcome.out + outcome.err; }

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
      {"augmentation and dropout", kNet, kRates},
      {"BatchNorm", kData + kHead + kNorm + kTail, kRates},
      {"iter_size", kNet, kRates + "iter_size: 4"},
      {"average of the weights", kNet, kRates + "ema_decay: 0.9"},
      {"average_loss", kNet, kRates + "average_loss: 20"},
      {"Adam", kNet,
       "type: \"Adam\" momentum2: 0.99 momentum: 0.9 base_lr: 0.002 lr_policy: \"fixed\""},
      {"multistep", kNet,
       "base_lr: 0.05 momentum: 0.9 lr_policy: \"multistep\" gamma: 0.1 stepvalue: 4 stepvalue: "
       "19"},
      {"plateau", kNet, "base_lr: 0.05 lr_policy: \"plateau\" gamma: 0.5 plateau_winsize: 3"},
      {"clipped gradients", kNet, kRates + "clip_gradients: 0.5"},
      {"debug_info", kNet, kRates + "debug_info: true"},
      {"no display", kNet, kRates + "display: 0"},
      {"each displayed", kNet, kRates + "display: 1"},
      {"a state from pass to pass", kSequence, fixed},
      {"nothing fused", kNet, kRates, "-off fuse"},
      {"plain kernels", kNet, kRates, "-implementation plain"},
      {"integers from an iteration on", kNet, kRates + "quantize { start: 10 }"},
      {"pruning", kNet,
       kRates + "prune { kind: WEIGHTS sparsity: 0.5 start: 5 end: 15 interval: 5 }"},
      {"epochs", kNet, kRates + "max_epoch: 2"},
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

constexpr const char* kTrain = "crema train -solver solver.prototxt -run r -set random_seed=1 ";

// The run of a program that was killed, or told to stop, and went on.
TEST(Replay, OpensIterationsOfAResumedRun) {
  const Folder folder;
  prepare(folder, kNet, kRates);
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
  prepare(folder, kNet, kRates);
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
  prepare(folder, kNet, kRates);
  ASSERT_EQ(run(folder, kTrain).code, 0);
  std::filesystem::create_directories(folder.file("far/away"));
  std::filesystem::rename(folder.file("r"), folder.file("far/r"));
  expect_part(everything(run(folder, "crema replay -run ../r -iteration 20", "far/away")), kBits);
  expect_part(everything(run(folder, "crema reproduce far/r")), "identical");
}

TEST(Replay, RefusesWhatItCannotDo) {
  const Folder folder;
  prepare(folder, kNet, kRates);
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

TEST(Fork, BeginsWhereTheOtherRunWas) {
  const Folder folder;
  prepare(folder, kNet, kRates);
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
  prepare(folder, kNet, kRates);
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
  prepare(folder, kNet, kRates);
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

}  // namespace replay_test
}  // namespace crema::tests
