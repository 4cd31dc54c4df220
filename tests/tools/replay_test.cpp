// replay, reproduce and bisect: what a resume, a rollback or damage means to them, and what they refuse.
#include <gtest/gtest.h>

#include <array>

#include "tools/replayed.h"

namespace crema::tests {
namespace replay_test {

using namespace replayed;  // NOLINT(google-build-using-namespace)

std::string only_error(const Folder& folder, const std::string& command) {
  const Outcome outcome = run(folder, command);
  EXPECT_EQ(outcome.code, 1) << command;
  EXPECT_EQ(outcome.errors().size(), 1u) << outcome.err;
  return outcome.errors().empty() ? "" : outcome.errors()[0];
}

// A rate that makes the loss infinite after iteration 25: the run goes back to a snapshot or its start.
TEST(Replay, GoesBackAsTheRunDid) {
  for (const int every : {10, 0}) {
    const Folder folder;
    write(folder, kPlain,
          solver(cat("lr_policy: \"multistep\" gamma: 1e15 stepvalue: 25 rollback_factor: 1e-15 "
                     "rollback_most: 2 random_seed: 3 "
                     "on_divergence: ROLLBACK snapshot: ",
                     every)));
    const Outcome trained = train(folder);
    ASSERT_EQ(trained.code, 0) << trained.err;
    expect_part(folder.read("r/metrics.jsonl"), "\"rollback\"");
    for (const int64_t iteration : {5, 20, 22, 26, 39}) expect_same(folder, iteration);
    if (every == 0) continue;
    // The snapshot to which it went back is gone.
    for (const char* kind : {"caffemodel", "solverstate"})
      std::filesystem::remove(folder.file(cat("r/snapshots/solver_iter_20.", kind)));
    expect_same(folder, 27);
    EXPECT_EQ(run(folder, "crema reproduce r").code, 0);
  }
}

TEST(Replay, OpensTheIterationThatEndedTheRun) {
  const Folder folder;
  write(folder, kPlain, solver("base_lr: 1e4 random_seed: 3"));
  ASSERT_EQ(train(folder).code, 1);
  const int64_t last = std::stoll(split(folder.read("r/iterations.csv"), '\n').end()[-2]);
  const Outcome outcome = expect_same(folder, last);
  expect_part(outcome.err, cat("in iteration ", last, ": the loss is "));
  EXPECT_EQ(outcome.err.find("/crema_replay_"), std::string::npos) << outcome.err;
  expect_part(outcome.out, "pictures, record ");
}

// Iterations before a resume with another rate have the rate that they had, and other files are named.
TEST(Replay, KnowsWhatAResumeHasChanged) {
  const Folder folder;
  write(folder, kPlain, solver());
  ASSERT_EQ(train(folder, "-run r -set max_iter=30").code, 0);
  std::ofstream(folder.file("r/iterations.csv"), std::ios::app) << "30,1,,\n31,2,,\n";  // a kill
  ASSERT_EQ(train(folder, "-run r -snapshot auto -set base_lr=0.001 -set random_seed=9").code, 0);
  for (const int64_t iteration : {3, 16, 29, 30, 38}) expect_same(folder, iteration);
  const Outcome again = run(folder, "crema reproduce r");
  EXPECT_EQ(again.code, 0) << again.err;
  expect_part(again.err, "resumed in iteration 30, from where on base_lr was 0.02 and is 0.001");
  expect_part(again.err, "identical: 30 losses");
  const Outcome across = run(folder, "crema replay -run r -iteration 28 -until 33 -output o");
  expect_part(across.err, "open it and later ones in a replay of their own");
  // A resume from an older snapshot outdates those after it.
  ASSERT_EQ(train(folder,
                  "-run r -snapshot r/snapshots/solver_iter_15.solverstate -set snapshot=0 "
                  "-set base_lr=0.03 -set max_iter=33")
                .code,
            0);
  std::filesystem::remove(folder.file("r/snapshots/solver_iter_33.solverstate"));
  for (const int64_t iteration : {14, 15, 32}) expect_same(folder, iteration);
}

// One record with a wrong label and one with noise, found by the one command that train names.
TEST(Replay, FindsThePlantedSamples) {
  const Folder folder;
  write(folder, kPlain, solver());
  for (const bool noisy : {false, true}) {
    const std::string name = noisy ? "noisy" : "mislabeled";
    constexpr int64_t kRecord = 617;
    make_pictures(folder, name, 800, [&](int64_t number, Datum* datum) {
      if (number != kRecord) return;
      if (!noisy) return datum->set_label((datum->label() + 1) % kClasses);
      const std::string bytes = picture(number, -1).data();
      datum->clear_data();
      for (const char byte : bytes) datum->add_float_data(1000.0f * static_cast<uint8_t>(byte));
    });
    folder.write("net.prototxt",
                 "name: \"planted\"\n" + data("", "scale: 0.01", "", name) +
                     std::regex_replace(kBody, std::regex("layer \\{ name: \"drop\".*\n"), ""));
    const std::string where = cat("'", name, " run'");
    const Outcome trained = train(
        folder, cat("-run ", where, " -set max_iter=200 -set base_lr=0.05 -set random_seed=3"));
    ASSERT_EQ(trained.code, 0) << trained.err;
    std::smatch found;
    const std::regex command(
        cat("To see its samples: (crema replay -run '[^']+' -iteration ", kRecord / 4, ")\n"));
    ASSERT_TRUE(std::regex_search(trained.err, found, command)) << trained.err;
    const Outcome opened = run(folder, found[1].str());
    ASSERT_EQ(opened.code, 0) << opened.err;
    const std::vector<std::string> rows = split(opened.out, '\n');
    ASSERT_GT(rows.size(), 2u);
    expect_part(rows[1], cat(name, ", record ", kRecord, " "));
    expect_part(opened.err, "bit for bit");
    ASSERT_EQ(run(folder, cat("crema report ", where, " -output report.html")).code, 0);
    expect_part(folder.read("report.html"), cat("Samples of iteration ", kRecord / 4));
  }
}

TEST(Bisect, NamesWhatParts) {
  const Folder folder;
  write(folder, kPlain, solver("random_seed: 3"));
  struct Row {
    const char* flags;
    const char* answer;
  };
  const Row rows[] = {
      {"", "equal, bit for bit, in 40 iterations"},
      {"-set max_iter=45", "in 40 iterations; after iteration 39 only one of them goes on"},
      {"-set random_seed=4", "iteration 0: the first that differs is the initial values of conv/0"},
      {"-set base_lr=0.03", "iteration 0: the first that differs is the update of parameter "},
      {"-set lr_policy=multistep -set gamma=0.5 -set stepvalue=30",
       "iteration 30: the first that differs is the update of parameter "},
      {"-implementation plain", "iteration 0: the first that differs is "},
      {"-batch 3", "the shape of the blob \"data\" of layer \"data\" (Data): 4x1x8x8 and 3x1x8x8"},
      {"-set 'layer[drop].dropout_param.dropout_ratio=0.4'",
       "the blob \"hidden\" of layer \"drop\" (Dropout)"},
      {"-set 'layer[conv].convolution_param.num_output=3'",
       "the nets' parameters: conv/0 (4x1x3x3) and conv/0 (3x1x3x3)"},
  };
  ASSERT_EQ(train(folder).code, 0);
  std::filesystem::create_directory(folder.file("elsewhere"));
  for (const Row& row : rows) {
    std::filesystem::remove_all(folder.file("other"));
    ASSERT_EQ(train(folder, cat("-run other ", row.flags)).code, 0);
    const Outcome outcome = run(folder, "crema bisect ../r ../other", "elsewhere");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    expect_part(outcome.err, row.answer);
  }
  const Outcome plain = run(folder, "crema reproduce -implementation plain r");
  EXPECT_EQ(plain.code, 1);
  expect_part(plain.err, "different: Not the run's bits: ");
}

TEST(Bisect, KnowsThatDataHaveChanged) {
  const Folder folder;
  write(folder, kPlain, solver("random_seed: 3"));
  ASSERT_EQ(train(folder).code, 0);
  std::filesystem::remove_all(folder.file("pictures"));
  make_pictures(folder, "pictures", 43, [](int64_t number, Datum* datum) {
    if (number == 9) datum->set_label(0);
  });
  const Outcome again = run(folder, "crema reproduce r");
  EXPECT_EQ(again.code, 1);
  expect_part(again.err,
              "different: Not the run's bits: equal up to iteration 1; in iteration 2 the loss is");
  ASSERT_EQ(train(folder, "-run other").code, 0);
  expect_part(run(folder, "crema bisect r other").err,
              "but in the data, the machine or the program");
}

TEST(Replay, RunsThatWereMovedAreTheSame) {
  const Folder folder;
  write(folder, kPlain, solver());
  ASSERT_EQ(train(folder, "-run deep/down").code, 0);
  std::filesystem::rename(folder.file("deep/down"), folder.file("r"));
  expect_same(folder, 37);
  EXPECT_EQ(run(folder, "crema reproduce ../r", "deep").code, 0);
}

TEST(Replay, RefusesWhatItCannotDo) {
  const Folder folder;
  write(folder, kPlain, solver());
  ASSERT_EQ(train(folder).code, 0);
  folder.write("mine/iteration_20/precious", "");
  folder.write("file", "");
  const std::vector<std::pair<std::string, std::string>> calls = {
      {"", "a run is needed: -run DIR"},
      {"-run r", "an iteration is needed: -iteration N"},
      {"-run tests -iteration 3", "tests: has no run.json"},
      {"-run r r -iteration 3", "-run r and r: give one of them"},
      {"-run r -iteration -3", "-iteration -3: expected 0 or more"},
      {"-run r -iteration 40", ": has no iteration 40: its last one is 39"},
      {"-run r -iteration 9223372036854775807", "its last one is 39"},
      {"-run r -iteration 4 -until 3", "-until 3: expected 4 to 39"},
      {"-run r -iteration 4 -until 40", "-until 40: expected 4 to 39"},
      {"-run r -iteration 4 -dump 'conw'",
       "-dump conw: net \"small\" has no blob and no parameter "
       "\"conw\" (did you mean \"conv\"?)"},
      {"-run r -iteration 4 -dump conv/7:grad", "(did you mean \"conv/0\"?)"},
      {"-run r -iteration 4 -dump data:grad", "-dump data:grad: \"data\" has no gradient"},
      {"-run r -iteration 20 -output mine", "iteration_20 exists, and is no earlier replay"},
      {"-run r -iteration 20 -output file", "file: cannot make this folder: Not a directory"},
  };
  for (const auto& [flags, message] : calls)
    expect_part(only_error(folder, "crema replay " + flags), message);
  EXPECT_FALSE(folder.has("r/replay/iteration_4/index.html"));
  expect_part(only_error(folder, "crema reproduce -iterations 0 r"), "expected a number above 0");

  ASSERT_EQ(train(folder, "-run gone").code, 0);
  std::filesystem::rename(folder.file("gone"), folder.file("moved"));
  const std::vector<std::array<std::string, 3>> files = {
      {"iterations.csv", "iteration,loss,weights,parameters\n0,2,,\nhello\n",
       "iterations.csv:3: expected"},
      {"iterations.csv", "iteration,loss,weights,parameters\n", "has no iterations"},
      {"iterations.csv", "9223372036854775807,2,,\n", "iterations.csv:1: expected"},
      {"run.json", "{\"ranks\": \"x\"}", "run.json: \"ranks\" is a string; expected a JSON number"},
      {"run.json", "{", "run.json: expected one JSON object"},
      {"solver.prototxt", "net", "solver.prototxt:1:4"},
      {"solver.prototxt", "", "solver.prototxt: cannot open"},
      {"train_val.prototxt", "", "train_val.prototxt: is missing: it is the net of this run"},
      {"snapshots/solver_iter_15.solverstate", "\n", "solver_iter_15.solverstate"},
      {"snapshots/solver_iter_15.caffemodel", "",
       "solver_iter_15.solverstate: an earlier one is taken then"},
  };
  for (const auto& [name, content, message] : files) {
    std::filesystem::remove_all(folder.file("h"));
    std::filesystem::copy(folder.file("moved"), folder.file("h"),
                          std::filesystem::copy_options::recursive);
    if (content.empty()) {
      std::filesystem::remove(folder.file("h/" + name));
    } else {
      folder.write("h/" + name, content);
    }
    expect_part(only_error(folder, "crema replay -run h -iteration 20"), message);
  }
  // Only what came of a divergence is not known without it.
  folder.write("r/metrics.jsonl", "damaged\n");
  expect_part(expect_same(folder, 20).err, "metrics.jsonl:1: expected one JSON object");
  // Rows that a full disk has kept from being written are unknown.
  std::string rows = folder.read("r/iterations.csv");
  const size_t cut = rows.find("\n33,"), end = rows.find("\n36,");
  folder.write("r/iterations.csv", rows.erase(cut, end - cut));
  expect_same(folder, 38);
}

TEST(Replay, TakesTheRunAsReproduceDoes) {
  const Folder folder;
  write(folder, kPlain, solver());
  ASSERT_EQ(train(folder).code, 0);
  expect_part(run(folder, "crema replay r -iteration 12").err, "bit for bit");
}

TEST(Replay, LeavesNoTemporaryFiles) {
  const Folder folder;
  write(folder, kPlain, solver());
  ASSERT_EQ(
      train(folder, "-run r -set max_iter=3000000 -set max_minutes=0.03 -set snapshot=0").code, 0);
  std::filesystem::create_directory(folder.file("tmp"));
  const Outcome outcome = run_shell(
      folder,
      "export TMPDIR=$PWD/tmp; \"$TOOLS\"/crema reproduce r & sleep 0.5; kill -TERM $!; wait $!");
  EXPECT_EQ(outcome.code, 128 + 15) << outcome.err;
  EXPECT_TRUE(std::filesystem::is_empty(folder.file("tmp")));
  expect_part(run_shell(folder, "TMPDIR=$PWD/none \"$TOOLS\"/crema replay -run r -iteration 3").err,
              "/none: cannot make a temporary folder in it; set TMPDIR");
  // Several at once: each leaves a whole folder.
  const std::string once = "\"$TOOLS\"/crema replay -run r -iteration 3";
  EXPECT_EQ(
      run_shell(folder, cat(once, " & a=$!; ", once, " & b=$!; ", once, " && wait $a && wait $b"))
          .code,
      0);
  EXPECT_TRUE(folder.has("r/replay/iteration_3/index.html"));
}

}  // namespace replay_test
}  // namespace crema::tests
