// A device that is lost during training: one message that says how to continue, and the previous
// snapshot unchanged.
#include <gtest/gtest.h>

#include "fixtures.h"

namespace crema::tests {
namespace lost_device_test {

// Loses the device, as a failing kernel would, at the end of an iteration or while a snapshot is
// written.
class Loss : public EventReader {
 public:
  explicit Loss(int64_t iteration, bool in_snapshot = false)
      : iteration_(iteration), in_snapshot_(in_snapshot) {}
  void read(const Event& event) override {
    const auto* step = std::get_if<event::Step>(&event);
    const auto* snapshot = std::get_if<event::Snapshot>(&event);
    const bool now = in_snapshot_ ? snapshot && snapshot->iteration == iteration_
                                  : step && step->iteration == iteration_;
    if (now) throw DeviceLost("waiting for the GPU failed: it was lost");
  }

 private:
  int64_t iteration_;
  bool in_snapshot_;
};

std::string settings(const Folder& folder) {
  return cat("max_iter: 10 snapshot: 4 random_seed: 1 snapshot_prefix: \"", folder.file("net"),
             "\" ");
}

std::string lost(const Folder& folder, Loss reader, SolverOptions options = {}) {
  Context context(Device::cpu);
  options.readers = {&reader};
  Solver solver(context, solver_file(settings(folder)), options);
  try {
    solver.solve();
  } catch (const DeviceLost& error) {
    return error.what();
  }
  ADD_FAILURE() << "the device was not lost";
  return "";
}

TEST(LostDevice, NamesTheSnapshotToGoOnFrom) {
  const Folder folder;
  const std::string message = lost(folder, Loss(7));
  EXPECT_EQ(message,
            cat("in iteration 7: waiting for the GPU failed: it was lost. The last snapshot "
                "is of iteration 4. Go on from there with: -snapshot ",
                folder.file("net_iter_4.solverstate")));
  EXPECT_FALSE(folder.has("net_iter_7.solverstate"));

  Context context(Device::cpu);
  SolverOptions options;
  options.snapshot = folder.file("net_iter_4.solverstate");
  Solver solver(context, solver_file(settings(folder)), options);
  solver.solve();
  EXPECT_EQ(solver.iteration(), 10);
}

TEST(LostDevice, InTheMiddleOfASnapshotTheOneBeforeStays) {
  const Folder folder;
  SolverOptions options;
  options.resume_command = [](const std::string& state) { return "crema train on " + state; };
  const std::string message = lost(folder, Loss(8, true), options);
  expect_part(message, "in iteration 8: ");
  expect_part(message,
              cat("Go on from there with: crema train on ", folder.file("net_iter_4.solverstate")));
  EXPECT_FALSE(folder.has("net_iter_8.solverstate"));
}

TEST(LostDevice, BeforeAnySnapshotSaysSo) {
  const Folder folder;
  expect_part(lost(folder, Loss(2)),
              "No snapshot was written before: the solver writes one every 4 iterations");
}

TEST(LostDevice, ARunThatGoesOnKnowsWhereItStarted) {
  const Folder folder;
  lost(folder, Loss(7));
  SolverOptions options;
  options.snapshot = folder.file("net_iter_4.solverstate");
  expect_part(lost(folder, Loss(6), options), "The last snapshot is of iteration 4.");
}

}  // namespace lost_device_test
}  // namespace crema::tests
