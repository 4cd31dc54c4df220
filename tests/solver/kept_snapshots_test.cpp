// Which snapshots are kept, the weights of the best test, and a run that is ended by the clock.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/files.h"
#include "fixtures.h"
#include "write_failures.h"

namespace crema::tests {
namespace kept_snapshots_test {

int64_t lines_with(const Lines& log, const std::string& text) {
  return std::count_if(log.all.begin(), log.all.end(), [&](const std::string& line) {
    return line.find(text) != std::string::npos;
  });
}

SolverFile kept_file(const Folder& folder, const std::string& more) {
  return solver_file(cat("random_seed: 1 snapshot_prefix: \"", folder.file("net"),
                         "\" max_iter: 12 snapshot_after_train: false ", more));
}

struct KeptRow {
  const char* fields;
  std::vector<std::string> files;
};

TEST(KeptSnapshots, TheNewestAndTheMultiplesStay) {
  const auto both = [](std::initializer_list<int> iterations) {
    std::vector<std::string> names;
    for (const int i : iterations) {
      names.push_back(cat("net_iter_", i, ".caffemodel"));
      names.push_back(cat("net_iter_", i, ".solverstate"));
    }
    std::sort(names.begin(), names.end());
    return names;
  };
  const KeptRow rows[] = {
      {"snapshot: 2", both({2, 4, 6, 8, 10, 12})},
      {"snapshot: 2 keep_last: 1", both({12})},
      {"snapshot: 2 keep_last: 2", both({10, 12})},
      {"snapshot: 2 keep_last: 1 keep_every: 4", both({4, 8, 12})},
      {"snapshot: 2 keep_last: 9", both({2, 4, 6, 8, 10, 12})},
      {"snapshot: 2 keep_last: 1 snapshot_include_state: false", {"net_iter_12.caffemodel"}},
      {"snapshot: 2 keep_last: 1 ema_decay: 0.5",
       {"net_iter_12.caffemodel", "net_iter_12.solverstate", "net_iter_12_ema.caffemodel"}},
  };
  for (const KeptRow& row : rows) {
    SCOPED_TRACE(row.fields);
    const Folder folder;
    Context context(Device::cpu);
    Solver solver(context, kept_file(folder, row.fields));
    solver.solve();
    EXPECT_EQ(folder.names(), row.files);
  }
}

TEST(KeptSnapshots, OnlyWhatTheRunItselfHasWritten) {
  const Folder folder;
  Context context(Device::cpu);
  {
    Solver first(context, kept_file(folder, "snapshot: 2"));
    first.step(4);
  }
  SolverOptions options;
  options.snapshot = folder.file("net_iter_2.solverstate");
  Solver second(context, kept_file(folder, "snapshot: 2 keep_last: 1"), options);
  second.solve();
  // 2 is another run's; 4 was written again, so it is the second run's.
  EXPECT_EQ(folder.names(),
            (std::vector<std::string>{"net_iter_12.caffemodel", "net_iter_12.solverstate",
                                      "net_iter_2.caffemodel", "net_iter_2.solverstate"}));
}

TEST(KeptSnapshots, RestartsGoOnCounting) {
  for (const std::string format : {"BINARYPROTO", "HDF5"}) {
    const Folder folder;
    const std::string end = format == "HDF5" ? ".h5" : "";
    const std::string fields = cat("snapshot: 2 keep_last: 2 snapshot_format: ", format);
    Context context(Device::cpu);
    for (int iteration = 2; iteration <= 10; iteration += 2) {
      SolverOptions options;
      if (iteration > 2)
        options.snapshot = folder.file(cat("net_iter_", iteration - 2, ".solverstate", end));
      Solver(context, kept_file(folder, fields), options).step(2);
    }
    EXPECT_EQ(folder.names(), (std::vector<std::string>{
                                  "net_iter_10.caffemodel" + end, "net_iter_10.solverstate" + end,
                                  "net_iter_8.caffemodel" + end, "net_iter_8.solverstate" + end}));
    // Another prefix, with files of the same iterations from another run.
    const Folder other;
    other.write("net_iter_8.caffemodel" + end, "another run's");
    SolverOptions options;
    options.snapshot = folder.file("net_iter_10.solverstate" + end);
    Solver(context, kept_file(other, fields), options).step(2);
    EXPECT_TRUE(other.has("net_iter_8.caffemodel" + end));
    EXPECT_TRUE(other.has("net_iter_12.caffemodel" + end));
  }
}

// A run that was killed before it removed what is too old, and that has nothing more to write than its
// last snapshot, writes what an undisturbed run does.
TEST(KeptSnapshots, ARestartRemovesWhatTheRunBeforeCouldNot) {
  Context context(Device::cpu);
  const std::string fields = "snapshot: 2 keep_last: 2";
  const Folder undisturbed, folder;
  Solver(context, kept_file(undisturbed, fields)).step(8);
  {
    Solver first(context, kept_file(folder, fields));
    first.step(4);
  }
  const std::string oldest = folder.read("net_iter_2.caffemodel");
  SolverOptions options;
  options.snapshot = folder.file("net_iter_4.solverstate");
  Solver(context, kept_file(folder, fields), options).step(2);
  folder.write("net_iter_2.caffemodel", oldest);
  options.snapshot = folder.file("net_iter_6.solverstate");
  Solver(context, kept_file(folder, fields), options).step(2);
  EXPECT_EQ(folder.names(), undisturbed.names());
  const auto kept = [](const Folder& of) {
    SolverState state;
    EXPECT_TRUE(state.ParseFromString(of.read("net_iter_8.solverstate")));
    return std::vector<int64_t>(state.kept_snapshots().begin(), state.kept_snapshots().end());
  };
  EXPECT_EQ(kept(folder), kept(undisturbed));
}

TEST(KeptSnapshots, TheNewestWholeOne) {
  const Folder folder;
  Context context(Device::cpu);
  Lines log;
  context.set_log(log);
  const SolverFile file = kept_file(folder, "snapshot: 2");
  EXPECT_TRUE(newest_snapshots(file.solver, log).empty());
  expect_part(log.infos.back(), "the training begins anew");
  Solver(context, file).solve();
  const auto state = [&](int iteration) {
    return folder.file(cat("net_iter_", iteration, ".solverstate"));
  };
  const auto weights = [&](int iteration) {
    return folder.file(cat("net_iter_", iteration, ".caffemodel"));
  };
  write_file_atomically(folder.file("net_iter_99.solverstate.old"), "no state");
  write_file_atomically(folder.file("other_iter_99.solverstate"), "no state");
  EXPECT_EQ(newest_snapshots(file.solver, log)[0], state(12));
  EXPECT_TRUE(log.warnings.empty());
  write_file_atomically(state(12), read_file(state(12)).substr(0, 200));
  std::remove(weights(10).c_str());
  write_file_atomically(weights(8), read_file(weights(4)));
  std::string flipped = read_file(weights(6));
  flipped[flipped.size() / 2] ^= 1;
  write_file_atomically(weights(6), flipped);
  SolverOptions options;
  options.older_snapshots = newest_snapshots(file.solver, log);
  ASSERT_EQ(options.older_snapshots,
            (std::vector<std::string>{state(8), state(6), state(4), state(2)}));
  options.snapshot = options.older_snapshots[0];
  options.older_snapshots.erase(options.older_snapshots.begin());
  const Solver resumed(context, file, options);
  EXPECT_EQ(resumed.iteration(), 4);
  ASSERT_EQ(log.warnings.size(), 4u);
  for (size_t i = 0; i < 4; ++i) expect_part(log.warnings[i], cat("net_iter_", 12 - 2 * i, "."));
  for (const int iteration : {2, 4}) write_file_atomically(weights(iteration), "");
  expect_part(error_of([&] { Solver(context, file, options); }), "net_iter_2.");
  for (const int iteration : {2, 4, 6, 8}) write_file_atomically(state(iteration), "");
  expect_part(error_of([&] { newest_snapshots(file.solver, log); }), "none of the 6 snapshots");
}

// A run that treats them as absent would start over, and overwrite them.
TEST(KeptSnapshots, WhatCannotBeLookedAtIsNotAbsent) {
  const Folder folder;
  Context context(Device::cpu);
  Solver(context, kept_file(folder, "snapshot: 2")).step(4);
  const SolverFile file = kept_file(folder, "snapshot: 2");
  const auto newest = [&] { return newest_snapshots(file.solver, silent_log()); };
  EXPECT_EQ(newest().size(), 2u);
  const auto refused = [&](const std::string& path, mode_t mode, const char* message) {
    chmod(path.c_str(), mode);
    {
      const OtherUser other;
      expect_part(error_of(newest), message);
    }
    chmod(path.c_str(), 0755);
  };
  refused(folder.path(), 0333, "cannot list this folder: Permission denied");
  refused(folder.path(), 0444, "Permission denied");
  refused(folder.file("net_iter_4.solverstate"), 0,
          "net_iter_4.solverstate: cannot open: Permission");
  refused(folder.file("net_iter_4.caffemodel"), 0,
          "net_iter_4.caffemodel: cannot open: Permission");
}

TEST(KeptSnapshots, FilesThatWereWrittenAgainStay) {
  const Folder folder;
  Context context(Device::cpu);
  Solver solver(context, kept_file(folder, "snapshot: 2 keep_last: 3"));
  solver.step(4);
  solver.restore(folder.file("net_iter_2.solverstate"));
  solver.step(6);
  EXPECT_EQ(folder.names(),
            (std::vector<std::string>{"net_iter_4.caffemodel", "net_iter_4.solverstate",
                                      "net_iter_6.caffemodel", "net_iter_6.solverstate",
                                      "net_iter_8.caffemodel", "net_iter_8.solverstate"}));
}

TEST(KeptSnapshots, TheBestTest) {
  const Folder folder;
  Context context(Device::cpu);
  Lines log;
  context.set_log(log);
  const std::string text = "test_iter: 1 test_interval: 1 keep_best { output: \"loss\" } ";
  std::vector<float> weights_of_best;
  Solver solver(context, kept_file(folder, text));
  // Each line of the log says where the weights went; the last one counts.
  int64_t best = -1;
  for (int64_t i = 0; i < 8; ++i) {
    const int64_t before = lines_with(log, "Best test so far: loss = ");
    const std::vector<float> now = parameters_of(solver);
    solver.step(1);  // begins with the test of these weights
    if (lines_with(log, "Best test so far: loss = ") == before) continue;
    best = i;
    weights_of_best = now;
  }
  ASSERT_GE(best, 0);
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"net_best.caffemodel"}));
  SolverOptions options;
  options.weights = {folder.file("net_best.caffemodel")};
  Solver again(context, kept_file(folder, ""), options);
  EXPECT_EQ(parameters_of(again), weights_of_best);
}

TEST(KeptSnapshots, TheClock) {
  const Folder folder;
  Context context(Device::cpu);
  Lines log;
  context.set_log(log);
  // Shorter than an iteration.
  Solver solver(context, kept_file(folder, "max_minutes: 1e-9"));
  solver.solve();
  EXPECT_EQ(solver.iteration(), 1);
  EXPECT_TRUE(solver.stopped());
  EXPECT_EQ(folder.names(),
            (std::vector<std::string>{"net_iter_1.caffemodel", "net_iter_1.solverstate"}));
  EXPECT_EQ(lines_with(log, "max_minutes is "), 1);
  const Folder other;
  Solver often(context, kept_file(other, "snapshot_minutes: 1e-9"));
  often.step(3);
  EXPECT_EQ(other.names().size(), 6u);
  const Folder seldom;
  Solver rarely(context, kept_file(seldom, "snapshot_minutes: 1000 max_minutes: 1000"));
  rarely.step(3);
  EXPECT_TRUE(seldom.names().empty());
}

TEST(KeptSnapshots, ValuesThatMakeNoSense) {
  const std::pair<const char*, const char*> rows[] = {
      {"keep_last: -1", "keep_last is -1, it must be at least 0"},
      {"keep_every: 3", "keep_last is 0, which keeps all"},
      {"max_minutes: -2", "max_minutes is -2"},
      {"keep_best { output: \"los\" } test_iter: 1 test_interval: 1", "did you mean \"loss\"?"},
  };
  const Folder folder;
  Context context(Device::cpu);
  for (const auto& [fields, message] : rows) {
    const SolverFile file = kept_file(folder, fields);
    expect_part(error_of([&] { Solver(context, file); }), message);
  }
}

}  // namespace kept_snapshots_test
}  // namespace crema::tests
