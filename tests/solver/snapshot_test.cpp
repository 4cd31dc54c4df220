// Snapshots: damaged, foreign and missing files are refused; a full disk and a kill at any moment
// leave earlier snapshots intact. resume_test.cpp checks that a resumed run continues as if
// uninterrupted.
#include "solver/snapshot/snapshot.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "fixtures.h"
#include "solver/iteration/optimizer.h"
#include "solver/snapshot/state_file.h"
#include "solver/snapshot/training_copy.h"

namespace crema::tests {
namespace snapshot_test {

std::string settings(const std::string& type, const std::string& format, const Folder& folder) {
  return cat("type: \"", type,
             "\" momentum: 0.9 weight_decay: 0.001 max_iter: 10 snapshot: 4 snapshot_prefix: \"",
             folder.file("net"), "\" snapshot_format: ", format,
             " display: 3 average_loss: 3 test_iter: 2 test_interval: 3 iter_size: 2 ");
}

// A trained solver with one snapshot, at iteration 4.
struct Trained {
  explicit Trained(const std::string& format = "BINARYPROTO", const std::string& net = kNet)
      : context(Device::cpu) {
    context.set_log(log);
    solver.emplace(context,
                   solver_file(settings("Adam", format, folder) + " random_seed: 5 ", net));
    solver->step(4);
  }
  std::string state() const { return folder.file("net_iter_4.solverstate"); }
  Folder folder;
  Context context;
  Lines log;
  std::optional<Solver> solver;
};

std::string resume_error(const std::string& solver_text, const std::string& state,
                         const std::string& net = kNet) {
  Context context(Device::cpu);
  SolverOptions options;
  options.snapshot = state;
  return error_of([&] { Solver solver(context, solver_file(solver_text, net), options); });
}

TEST(Snapshot, FilesOfASnapshot) {
  const Trained binary, hdf5("HDF5");
  EXPECT_EQ(binary.folder.names(),
            (std::vector<std::string>{"net_iter_4.caffemodel", "net_iter_4.solverstate"}));
  EXPECT_EQ(hdf5.folder.names(),
            (std::vector<std::string>{"net_iter_4.caffemodel.h5", "net_iter_4.solverstate.h5"}));
}

TEST(Snapshot, StateRoundTrip) {
  const Trained binary;
  const SolverState state = read_solver_state(binary.state());
  EXPECT_EQ(state.iter(), 4);
  EXPECT_EQ(state.history_size(), 8);  // Adam: two for each of four parameters
  EXPECT_EQ(state.history(0).shape().dim(0), 7);
  EXPECT_EQ(state.history(4).data_size(), 35);
  EXPECT_EQ(state.train_passes(), 8u);
  EXPECT_EQ(state.test_passes(0), 4u);
  EXPECT_EQ(state.seed(), 5u);
  EXPECT_TRUE(state.has_checksum());
  write_solver_state(state, binary.folder.file("copy.h5"), true);
  SolverState copy = read_solver_state(binary.folder.file("copy.h5"));
  EXPECT_TRUE(copy.has_checksum());
  copy.set_checksum(state.checksum());  // of other bytes
  EXPECT_EQ(copy.SerializeAsString(), state.SerializeAsString());
}

TEST(Snapshot, EveryCutIsNoticed) {
  const Trained trained;
  const std::string whole = read_file(trained.state()),
                    damaged = trained.folder.file("damaged.solverstate");
  for (size_t length = 0; length < whole.size(); length += length < 64 ? 1 : 37) {
    trained.folder.write("damaged.solverstate", whole.substr(0, length));
    expect_part(resume_error(settings("Adam", "BINARYPROTO", trained.folder), damaged),
                "damaged.solverstate");
  }
}

TEST(Snapshot, EveryFlippedBitIsNoticed) {
  const Trained trained;
  const std::string whole = read_file(trained.state()),
                    damaged = trained.folder.file("damaged.solverstate");
  const Random random{1, 2};
  for (int i = 0; i < 200; ++i) {
    std::string bytes = whole;
    bytes[random.word(2 * i) % bytes.size()] ^= static_cast<char>(1 << random.word(2 * i + 1) % 8);
    trained.folder.write("damaged.solverstate", bytes);
    SCOPED_TRACE(i);
    expect_part(error_of([&] { read_solver_state(damaged); }).substr(damaged.size()), "solver");
  }
}

TEST(Snapshot, CutHdf5StateIsRefused) {
  const Trained trained("HDF5");
  const std::string whole = read_file(trained.state() + ".h5"),
                    damaged = trained.folder.file("damaged.h5");
  for (double part : {0.001, 0.1, 0.5, 0.9}) {
    trained.folder.write(
        "damaged.h5",
        whole.substr(0, static_cast<size_t>(part * static_cast<double>(whole.size()))));
    EXPECT_THROW(read_solver_state(damaged), Error) << part;
  }
}

TEST(Snapshot, TheByteIsNamed) {
  const Trained trained;
  const std::string damaged = trained.folder.file("damaged.solverstate"),
                    whole = read_file(trained.state());
  trained.folder.write("damaged.solverstate", whole.substr(0, whole.size() / 2));
  const std::string message = error_of([&] { read_solver_state(damaged); });
  expect_part(message, damaged + ": byte ");
  expect_part(message, "damaged or no .solverstate");
  expect_part(error_of([&] {
                trained.folder.write("damaged.solverstate", "");
                read_solver_state(damaged);
              }),
              "it is an empty file");
}

TEST(Snapshot, OfAnotherNet) {
  const Trained trained;
  const std::string text = settings("Adam", "BINARYPROTO", trained.folder);
  std::string net = kNet;
  expect_part(resume_error(settings("SGD", "BINARYPROTO", trained.folder), trained.state()),
              "its history was kept by type \"Adam\" and means something else to type \"SGD\"");
  net.replace(net.find("num_output: 7"), 13, "num_output: 8");
  expect_part(resume_error(text, trained.state(), net),
              "history blob 0 is 7x5, but parameter 0 of layer \"ip1\" is 8x5");
  net = kNet;
  for (size_t at; (at = net.find("\"ip1\"")) != std::string::npos;) net.replace(at, 5, "\"fc1\"");
  expect_part(resume_error(text, trained.state(), net), "names of the layers");
}

TEST(Snapshot, WeightsBesideTheStateAreFound) {
  const Trained trained;
  const Folder moved;
  std::filesystem::rename(trained.state(), moved.file("net_iter_4.solverstate"));
  const std::string text = settings("Adam", "BINARYPROTO", moved);
  // learned_net still names the old place, where the weights are.
  Context context(Device::cpu);
  SolverOptions options;
  options.snapshot = moved.file("net_iter_4.solverstate");
  Solver first(context, solver_file(text), options);
  EXPECT_EQ(first.iteration(), 4);
  std::filesystem::rename(trained.folder.file("net_iter_4.caffemodel"),
                          moved.file("net_iter_4.caffemodel"));
  Solver second(context, solver_file(text), options);
  EXPECT_EQ(parameters_of(first), parameters_of(second));
  // The weights' own name works as well.
  options.snapshot = moved.file("net_iter_4.caffemodel");
  Solver third(context, solver_file(text), options);
  EXPECT_EQ(third.iteration(), 4);
  std::filesystem::remove(moved.file("net_iter_4.caffemodel"));
  expect_part(resume_error(text, moved.file("net_iter_4.solverstate")), "its weights are missing");
}

TEST(Snapshot, WeightsOfAnotherRunAreRefused) {
  Trained trained;
  const std::string weights = trained.folder.file("net_iter_4.caffemodel");
  trained.solver->step(1);
  save_caffemodel(trained.solver->net(), weights);
  expect_part(resume_error(settings("Adam", "BINARYPROTO", trained.folder), trained.state()),
              "does not hold the weights of this snapshot");
}

TEST(Snapshot, ASnapshotBringsItsOwnWeights) {
  const Trained trained;
  Context context(Device::cpu);
  SolverOptions options;
  options.snapshot = trained.state();
  options.weights = {trained.folder.file("net_iter_4.caffemodel")};
  expect_part(error_of([&] {
                Solver solver(context, solver_file(settings("Adam", "BINARYPROTO", trained.folder)),
                              options);
              }),
              "give one of them");
}

// No file may grow beyond `bytes` while this lives, as on a full disk.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_;
};

// Format, and whether the weights still fit.
class OnAFullDisk : public testing::TestWithParam<std::tuple<std::string, bool>> {};

TEST_P(OnAFullDisk, TrainingGoesOnAndOldSnapshotsStay) {
  const auto& [format, weights_fit] = GetParam();
  std::string net = kNet;
  net.replace(net.find("num_output: 7"), 13, "num_output: 90");
  Trained trained(format, net);
  const std::string end = format == "HDF5" ? ".h5" : "";
  const std::string weights = read_file(trained.folder.file("net_iter_4.caffemodel" + end));
  const std::string state = read_file(trained.state() + end);
  ASSERT_GT(state.size(), weights.size());
  {
    const FullDisk full(weights_fit ? (weights.size() + state.size()) / 2 : 100);
    for (int i = 0; i < 5; ++i) trained.solver->step(1);
    EXPECT_EQ(trained.solver->iteration(), 9);
    ASSERT_EQ(trained.log.errors.size(), 1u);
    expect_part(trained.log.errors[0], "The snapshot of iteration 8 could not be written");
    expect_part(trained.log.errors[0], "File too large");
    // The last one must not be lost silently.
    expect_part(error_of([&] { trained.solver->solve(); }), "cannot write");
  }
  EXPECT_EQ(read_file(trained.folder.file("net_iter_4.caffemodel" + end)), weights);
  EXPECT_EQ(read_file(trained.state() + end), state);
  for (const std::string& name : trained.folder.names()) {
    EXPECT_EQ(name.find("tmp"), std::string::npos) << name;
    EXPECT_EQ(
        name.find(".solverstate") != std::string::npos && name.find("_4.") == std::string::npos,
        false)
        << name;
  }
  trained.solver->snapshot();  // there is room again
  EXPECT_EQ(read_solver_state(trained.folder.file("net_iter_10.solverstate" + end)).iter(), 10);
}

INSTANTIATE_TEST_SUITE_P(All, OnAFullDisk,
                         testing::Combine(testing::Values("BINARYPROTO", "HDF5"), testing::Bool()));

// The child writes snapshots of growing iterations over and over; whenever it dies, the files there
// are complete.
TEST(Snapshot, KilledWhileWriting) {
  Trained trained;
  const std::string path = trained.folder.file("killed.solverstate");
  SolverState state = read_solver_state(trained.state());
  state.mutable_history(0)->mutable_data()->Resize(400000,
                                                   1.5f);  // long enough to be hit in the middle
  state.mutable_history(0)->mutable_shape()->clear_dim();
  state.mutable_history(0)->mutable_shape()->add_dim(400000);
  // Killed within the first few writes, however long this machine takes for one.
  const auto begin = std::chrono::steady_clock::now();
  write_solver_state(state, path, false);
  const auto each = std::chrono::duration_cast<std::chrono::microseconds>(
                        std::chrono::steady_clock::now() - begin)
                        .count() +
                    500;
  std::filesystem::remove(path);
  const Random random{3, 4};
  int written = 0;
  for (int round = 0; round < 50; ++round) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (int i = 1;; ++i) {
        state.set_iter(10 + i);  // its losses are of iterations before
        write_solver_state(state, path, round % 2 == 1);
      }
    }
    usleep(static_cast<useconds_t>(each / 4 + random.word(round) % (5 * each)));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    if (!std::filesystem::exists(path)) continue;
    ++written;
    const SolverState read = read_solver_state(path);
    EXPECT_EQ(read.history(0).data_size(), 400000);
    EXPECT_EQ(read.history(0).data(399999), 1.5f);
  }
  EXPECT_GT(written, 20);
}

// Contents that a binary file cannot store are reported before training.
TEST(Snapshot, TooLargeForItsFormat) {
  const auto error = [](const std::string& more, uint64_t limit,
                        const std::string& format = "BINARYPROTO") {
    const Folder folder;
    Context context(Device::cpu);
    const SolverFile file = solver_file(settings("Adam", format, folder) + more);
    Solver solver(context, file);
    const Optimizer optimizer(file.solver, solver.net());
    return error_or_none([&] { check_snapshot_size(file, solver.net(), optimizer, limit); });
  };
  // 66 weights; Adam keeps two numbers for each.
  EXPECT_EQ(error("", 2 * 66 * 4), "");
  expect_part(error("", 66 * 4), "a snapshot's optimizer state would take 528 bytes");
  EXPECT_EQ(error("snapshot_include_state: false", 66 * 4), "");
  expect_part(error("", 65 * 4),
              "a snapshot's weights would take 264 bytes, but the binary format");
  expect_part(error("snapshot_diff: true", 66 * 4), "a snapshot's weights would take 528 bytes");
  EXPECT_EQ(error("", 0, "HDF5"), "");
  const Folder folder;
  const SolverFile file = solver_file(settings("SGD", "BINARYPROTO", folder));
  EXPECT_EQ(error_or_none([&] { check_snapshot_size(file, 100, 200, 200); }), "");
  expect_part(error_or_none([&] { check_snapshot_size(file, 100, 200, 199); }),
              "a snapshot's optimizer state would take 200 bytes");
  SolverFile without = file;
  without.solver.set_snapshot(0);
  without.solver.set_snapshot_after_train(false);
  EXPECT_EQ(error_or_none([&] { check_snapshot_size(without, 100, 200, 1); }), "");
}

}  // namespace snapshot_test
}  // namespace crema::tests
