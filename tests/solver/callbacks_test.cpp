// Callbacks in iterations, and updates that a program asks for.
#include <gtest/gtest.h>

#include "fixtures.h"

namespace crema::tests {
namespace callbacks_test {

std::vector<Device> devices() {
  return gpu_count() > 0 ? std::vector<Device>{Device::cpu, Device::gpu}
                         : std::vector<Device>{Device::cpu};
}

struct Calls {
  int starts = 0, ready = 0;
};

// Callbacks change no bit; on a GPU other iterations are recorded.
TEST(Callbacks, CallbacksAreCalledInEachIteration) {
  for (const Device device : devices()) {
    const auto train = [&](Calls* calls) {
      Context context(device);
      Solver solver(context, solver_file("random_seed: 3 momentum: 0.9 iter_size: 2"));
      if (calls) {
        solver.add_callback({[calls, &solver] { EXPECT_EQ(calls->starts++, solver.iteration()); },
                             [calls, &solver] { EXPECT_EQ(calls->ready++, solver.iteration()); }});
        solver.add_callback({});
      }
      solver.step(5);
      return parameters_of(solver);
    };
    Calls calls;
    const std::vector<float> with = train(&calls), without = train(nullptr);
    EXPECT_EQ(calls.starts, 5);
    EXPECT_EQ(calls.ready, 5);
    EXPECT_EQ(with, without);
  }
}

TEST(Callbacks, GradientsCanBeChangedBeforeTheUpdate) {
  for (const Device device : devices()) {
    Context context(device);
    Solver solver(context, solver_file("random_seed: 3"));
    const std::vector<float> before = parameters_of(solver);
    solver.add_callback({{}, [&] {
                           for (const Parameter& parameter : solver.net().parameters()) {
                             const std::vector<float> zeros(parameter.shape.count());
                             from_floats(context, zeros.data(), parameter.diff);
                           }
                         }});
    solver.step(3);
    EXPECT_EQ(parameters_of(solver), before);
  }
}

TEST(Callbacks, WhatACallbackThrowsEndsTheIterationOnly) {
  struct Thrown {};
  for (const Device device : devices()) {
    for (const bool at_start : {true, false}) {
      Context context(device);
      Solver solver(context, solver_file("random_seed: 3"));
      bool due = true;
      const auto fails = [&] {
        if (due && solver.iteration() == 2) throw Thrown();
      };
      solver.add_callback(at_start ? IterationCallback{fails, {}} : IterationCallback{{}, fails});
      EXPECT_THROW(solver.step(5), Thrown);
      EXPECT_EQ(solver.iteration(), 2);
      due = false;
      solver.step(3);
      EXPECT_EQ(solver.iteration(), 5);
    }
  }
}

TEST(Callbacks, ApplyUpdateTakesTheGradientsThatThereAre) {
  for (const Device device : devices()) {
    Context context(device);
    Solver solver(context, solver_file("random_seed: 3 weight_decay: 0"));
    const std::vector<float> before = parameters_of(solver);
    for (const Parameter& parameter : solver.net().parameters()) {
      const std::vector<float> ones(parameter.shape.count(), 1);
      from_floats(context, ones.data(), parameter.diff);
    }
    solver.apply_update();
    EXPECT_EQ(solver.iteration(), 0);
    const std::vector<float> after = parameters_of(solver);
    size_t at = 0;
    for (const Parameter& parameter : solver.net().parameters()) {
      for (int64_t i = 0; i < parameter.shape.count(); ++i, ++at)
        ASSERT_NEAR(before[at] - after[at], 0.1f * parameter.lr_mult, 1e-6) << at;
    }
  }
}

TEST(Callbacks, FieldsCanBeReplaced) {
  for (const Device device : devices()) {
    Context context(device);
    Losses losses;
    SolverOptions options;
    options.readers = {&losses};
    Solver solver(context, solver_file("random_seed: 3 max_iter: 9 snapshot_after_train: false"),
                  options);
    const std::vector<float> before = parameters_of(solver);
    solver.set_base_rate(0);
    solver.set_max_iterations(4);
    solver.set_display(2);
    EXPECT_EQ(solver.rate(), 0);
    solver.solve();
    EXPECT_EQ(solver.iteration(), 4);
    EXPECT_EQ(losses.values.size(), 3u);  // of iterations 0 and 2, and after the last
    EXPECT_EQ(parameters_of(solver), before);
    EXPECT_THROW(solver.set_base_rate(-1), Error);
    EXPECT_THROW(solver.set_max_iterations(-1), Error);
    EXPECT_THROW(solver.set_display(-1), Error);
  }
}

TEST(Callbacks, TestsOneNet) {
  Context context(Device::cpu);
  Solver solver(context, solver_file("random_seed: 3 test_iter: 3 test_interval: 10"));
  solver.test_one(0);
  EXPECT_EQ(solver.test_passes(0), 3u);
  EXPECT_THROW(solver.test_one(1), Error);
}

}  // namespace callbacks_test
}  // namespace crema::tests
