// Snapshots written during training: they belong to the iteration in their name, are reported in
// order, and are finished however the run ends. A failed write harms no existing file.
#include "solver/snapshot/snapshot_writer.h"

#include <sys/stat.h>

#include <cmath>
#include <limits>

#include "data/databases/hdf5/hdf5_writer.h"
#include "fixtures.h"
#include "solver/snapshot/state_file.h"
#include "write_failures.h"

namespace crema::tests {
namespace snapshot_writer_test {

SolverFile file_for(const std::string& prefix, const std::string& more) {
  return solver_file(
      cat("type: \"Adam\" momentum: 0.9 random_seed: 3 max_iter: 12 "
          "snapshot_after_train: false snapshot_prefix: \"",
          prefix, "\" ", more));
}

// Calls `at` after each update.
class AtStep : public EventReader {
 public:
  explicit AtStep(std::function<void(int64_t)> at) : at_(std::move(at)) {}
  void read(const Event& event) override {
    if (const auto* step = std::get_if<event::Step>(&event)) at_(step->iteration);
  }

 private:
  std::function<void(int64_t)> at_;
};

// The steps and the snapshot events, as "4", "weights 4", "state 4", "done 4", "failed 4".
class Order : public EventReader {
 public:
  void read(const Event& event) override {
    if (const auto* step = std::get_if<event::Step>(&event)) add("", step->iteration);
    if (const auto* part = std::get_if<event::Snapshot>(&event)) {
      using Part = event::Snapshot::Part;
      add(part->part == Part::weights ? "weights " : "state ", part->iteration);
    }
    if (const auto* done = std::get_if<event::SnapshotDone>(&event)) add("done ", done->iteration);
    if (const auto* failed = std::get_if<event::SnapshotFailed>(&event))
      add("failed ", failed->iteration);
  }
  std::vector<std::string> all;

 private:
  void add(const char* what, int64_t iteration) { all.push_back(cat(what, iteration)); }
};

struct Training {
  Training(
      const std::string& more, std::function<void(int64_t)> at = [](int64_t) {},
      const std::string& prefix = "")
      : at_step(std::move(at)), context(Device::cpu) {
    context.set_log(log);
    SolverOptions options;
    options.readers = {&order, &at_step};
    options.action = [this] { return std::exchange(request, Action::none); };
    solver.emplace(context, file_for(prefix.empty() ? folder.file("net") : prefix, more), options);
  }
  Folder folder;
  Order order;
  AtStep at_step;
  Action request = Action::none;
  Context context;
  Lines log;
  std::optional<Solver> solver;
};

// `done` is sent as soon as it is so.
std::vector<std::string> without_done(const std::vector<std::string>& all) {
  std::vector<std::string> rest;
  for (const std::string& entry : all) {
    if (!starts_with(entry, "done")) rest.push_back(entry);
  }
  return rest;
}

// While the test holds an HDF5 file open, no other thread writes one: training continues meanwhile.
TEST(SnapshotWriter, TrainingGoesOnMeanwhile) {
  std::unique_ptr<Hdf5Writer> held;
  Training training("snapshot: 4 snapshot_format: HDF5 ", [&](int64_t iteration) {
    if (iteration == 4) held = std::make_unique<Hdf5Writer>("held");
    if (iteration == 7) held.reset();
  });
  training.solver->step(9);
  const std::vector<std::string>& all = training.order.all;
  EXPECT_EQ(without_done(all),
            (std::vector<std::string>{"1", "2", "3", "4", "weights 4", "state 4", "5", "6", "7",
                                      "8", "weights 8", "state 8", "9"}))
      << join(all, " ");
  // The second snapshot waits for the first, and step() for both.
  const auto at = [&](const char* entry) {
    return std::find(all.begin(), all.end(), entry) - all.begin();
  };
  EXPECT_GT(at("done 4"), at("7"));
  EXPECT_LT(at("done 4"), at("weights 8"));
  EXPECT_EQ(all.back(), "done 8");
}

// Everything in the files belongs to their iteration, in both formats and with all possible
// contents.
TEST(SnapshotWriter, WritesWhatWasThenNotWhatIsNow) {
  for (const std::string format : {"BINARYPROTO", "HDF5"}) {
    SCOPED_TRACE(format);
    const std::string more =
        cat("snapshot_format: ", format,
            " snapshot_diff: true ema_decay: 0.9 lookahead: true lookahead_steps: 2 ");
    Training goes_on(more + "snapshot: 4 "), stops(more);
    goes_on.solver->step(7);
    EXPECT_EQ(
        without_done(goes_on.order.all),
        (std::vector<std::string>{"1", "2", "3", "4", "weights 4", "state 4", "5", "6", "7"}));
    stops.solver->step(4);
    stops.solver->snapshot();
    ASSERT_EQ(stops.folder.names().size(), 3u);
    EXPECT_EQ(goes_on.folder.names(), stops.folder.names());
    for (const std::string& name : stops.folder.names()) {
      if (name.find("solverstate") != std::string::npos) continue;  // names the folder
      EXPECT_EQ(goes_on.folder.read(name), stops.folder.read(name)) << name;
    }
    const auto state_of = [](const Training& training) {
      SolverState state = read_solver_state(training.folder.file(training.folder.names()[1]));
      state.clear_learned_net();
      state.clear_checksum();
      return state.SerializeAsString();
    };
    EXPECT_EQ(state_of(goes_on), state_of(stops));
  }
}

// test_ema: in the test the net has the average, and a signal may ask for a snapshot then.
TEST(SnapshotWriter, InATestWithTheAverage) {
  const std::string more = "ema_decay: 0.5 test_ema: true test_iter: 2 test_interval: 4 ";
  Training asked(more), plain(more);
  plain.solver->step(4);
  plain.solver->snapshot();
  asked.solver->step(4);
  asked.request = Action::snapshot;
  asked.solver->step(1);  // begins with a test
  for (const char* name : {"net_iter_4.caffemodel", "net_iter_4_ema.caffemodel"})
    EXPECT_EQ(asked.folder.read(name), plain.folder.read(name)) << name;
  EXPECT_NE(plain.folder.read("net_iter_4.caffemodel"),
            plain.folder.read("net_iter_4_ema.caffemodel"));
  SolverState in_test = read_solver_state(asked.folder.file("net_iter_4.solverstate")),
              before = read_solver_state(plain.folder.file("net_iter_4.solverstate"));
  ASSERT_EQ(in_test.average_size(), before.average_size());
  for (int i = 0; i < before.average_size(); ++i)
    EXPECT_EQ(in_test.average(i).SerializeAsString(), before.average(i).SerializeAsString()) << i;
}

// How a run may end, and the messages about the snapshot that was being written.
TEST(SnapshotWriter, WhateverEndsTheTraining) {
  const auto is_whole = [](const Training& training) {
    return read_solver_state(training.folder.file("net_iter_4.solverstate")).iter() == 4;
  };
  {
    Training training("snapshot: 4 ", [](int64_t iteration) {
      if (iteration == 5) fail("a reader's own");
    });
    EXPECT_EQ(error_of([&] { training.solver->step(9); }), "a reader's own");
    EXPECT_TRUE(is_whole(training));
    EXPECT_EQ(training.order.all.back(), "done 4");
  }
  {
    Training training("snapshot: 4 ");
    training.at_step = AtStep([&](int64_t iteration) {
      if (iteration == 5) training.request = Action::stop;
    });
    training.solver->solve();
    EXPECT_EQ(training.solver->iteration(), 5);
    EXPECT_TRUE(is_whole(training));
    EXPECT_EQ(training.order.all.back(), "done 4");
  }
  for (const bool rolls_back : {false, true}) {
    Training training(cat("snapshot: 4 ", rolls_back ? "on_divergence: ROLLBACK " : ""));
    int times = 0;
    training.at_step = AtStep([&](int64_t iteration) {
      if (iteration != 5 || times++ > 0) return;
      const Tensor weights = training.solver->net().parameters()[0].data;
      weights.data<float>()[0] = std::numeric_limits<float>::quiet_NaN();
    });
    if (rolls_back) {
      training.solver->step(9);
      EXPECT_EQ(training.solver->iteration(), 9);
    } else {
      expect_part(error_of([&] { training.solver->step(9); }),
                  "The last snapshot is of iteration 4");
    }
    EXPECT_TRUE(is_whole(training));
  }
}

// A folder that becomes read-only at iteration 5: existing files stay, each due snapshot has one
// message, and the run ends with an error if the last one fails too.
struct WriteFailure {
  const char* name;
  std::function<void(const std::string&folder)> begin, end;
  const char* message;
};

class WithoutAFolder : public testing::TestWithParam<WriteFailure> {};

TEST_P(WithoutAFolder, WhatIsThereStays) {
  const WriteFailure& failure = GetParam();
  const Folder outer;
  chmod(outer.path().c_str(), 0755);
  const std::string run = outer.file("run");
  std::filesystem::create_directory(run);
  Training training(
      "snapshot: 4 keep_last: 1 ",
      [&](int64_t iteration) {
        if (iteration == 6) failure.begin(run);
      },
      run + "/net");
  training.solver->step(4);
  ASSERT_TRUE(outer.has("run/net_iter_4.solverstate"));
  const std::string said = error_of([&] { training.solver->solve(); });
  failure.end(run);
  expect_part(said, failure.message);
  EXPECT_EQ(training.solver->iteration(), 12);
  ASSERT_EQ(training.log.errors.size(), 2u) << join(training.log.errors, "\n");
  for (const int at : {0, 1}) {
    expect_part(training.log.errors[at],
                cat("The snapshot of iteration ", 8 + 4 * at, " could not be written: "));
    expect_part(training.log.errors[at], failure.message);
  }
  EXPECT_EQ(read_solver_state(run + "/net_iter_4.solverstate").iter(), 4);
  EXPECT_TRUE(file_exists(run + "/net_iter_4.caffemodel"));
  training.solver->snapshot();  // it can be again
  EXPECT_EQ(read_solver_state(run + "/net_iter_12.solverstate").iter(), 12);
}

const WriteFailure write_failures[] = {
    {"ReadOnly",
     [](const std::string& folder) {
       chmod(folder.c_str(), 0555);
       as_other_user(true);
     },
     [](const std::string& folder) {
       as_other_user(false);
       chmod(folder.c_str(), 0755);
     },
     "cannot write: Permission denied"},
    {"Moved", [](const std::string& folder) { std::filesystem::rename(folder, folder + "_moved"); },
     [](const std::string& folder) { std::filesystem::rename(folder + "_moved", folder); },
     "run does not exist: make it, and the next"},
};

INSTANTIATE_TEST_SUITE_P(All, WithoutAFolder, testing::ValuesIn(write_failures),
                         [](const auto& info) { return std::string(info.param.name); });

// The weights of the best test go the same way; that they cannot be written ends no training.
TEST(SnapshotWriter, TheBestTestWithoutAFolder) {
  Training training("test_iter: 1 test_interval: 1 keep_best { output: \"loss\" } ");
  std::filesystem::remove(training.folder.path());
  training.solver->step(8);
  ASSERT_FALSE(training.log.warnings.empty());
  for (const std::string& line : training.log.warnings) {
    expect_part(line, "the weights of the best test so far are not kept: the folder ");
    expect_part(line, " does not exist: make it");
  }
  std::filesystem::create_directory(training.folder.path());
  training.solver->solve();  // ends with a test, which may be no better
}

TEST(SnapshotWriter, LooksForRoomFirst) {
  const SmallDisk disk(64 << 10);
  if (!disk.mounted()) GTEST_SKIP() << "this user may not mount a file system";
  std::string net = kNet;
  net.replace(net.find("num_output: 7"), 13, "num_output: 500");  // 4503 parameters: 18 kB, 36 kB
  Context context(Device::cpu);
  Lines log;
  context.set_log(log);
  Order order;
  SolverOptions options;
  options.readers = {&order};
  const std::string text =
      cat("type: \"Adam\" momentum: 0.9 random_seed: 3 max_iter: 12 snapshot_after_train: false "
          "snapshot: 4 snapshot_prefix: \"",
          disk.path(), "/net\" ");
  Solver solver(context, solver_file(text, net), options);
  const std::string said = error_of([&] { solver.solve(); });
  expect_part(said, "its files need 5");
  expect_part(said, cat("but ", disk.path(), " has room for only "));
  EXPECT_EQ(log.errors.size(), 2u);
  // Said before anything was written, so the log names no file of 8.
  EXPECT_EQ(std::count(order.all.begin(), order.all.end(), "weights 8"), 0);
  EXPECT_EQ(std::count(order.all.begin(), order.all.end(), "failed 8"), 1);
  EXPECT_EQ(read_solver_state(disk.path() + "/net_iter_4.solverstate").iter(), 4);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(disk.path()), {}), 2);
}

TEST(SnapshotWriter, SaysHowMuchRoomIsMissing) {
  const Folder folder;
  const SolverFile file = file_for(folder.file("net"), "");
  check_snapshot_room(file.solver, 1);
  const std::string said = error_of([&] { check_snapshot_room(file.solver, uint64_t{1} << 60); });
  expect_part(said, "its files need ");
  expect_part(said, "room for only ");
}

}  // namespace snapshot_writer_test
}  // namespace crema::tests
