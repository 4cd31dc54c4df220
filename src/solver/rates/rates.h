// Rates: the learning rate of each iteration of a run. It needs no net.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "solver/events/events.h"
#include "solver/fields/epoch_fields.h"
#include "solver/rates/learning_rate.h"

namespace crema {

class SolverState;

class Rates {
 public:
  // `solver` must outlive this. Call changed() after its fields have changed. `length`: of an epoch,
  // for stepsize_epoch.
  explicit Rates(const SolverParameter& solver, const EpochLength& length = {});

  // The rate of an iteration, without doing a step of the policy.
  double at(int64_t iteration) const;
  // The rates of `count` iterations from `first` on, as they are if no test changes them.
  std::vector<double> ahead(int64_t first, int64_t count) const;
  // The rate of the iteration that is being trained; does the step of the policy that is due.
  double advance(int64_t iteration);
  // The event of a step that was done since the last call, of policies that choose their steps
  // themselves.
  std::optional<event::LearningRateStep> take_step(int64_t iteration);

  // Whether the rate follows the losses of the training: lr_policy "plateau" without plateau_test.
  bool follows_losses() const;
  // The mean loss up to an iteration, before its update.
  void observe_loss(double mean, int64_t iteration);
  // The first output of a test, for "stepearly".
  void observe_score(float score);
  // With plateau_test: whether tests at this iteration count, and what they say: how many tests ago
  // the best one was. True when the rate drops.
  bool heeds_tests(int64_t iteration) const { return iteration >= state_.plateau.warmup; }
  bool observe_tests(int tests_since_best);

  // A device observes the losses instead of observe_loss(): `read` gives its state, for which it may
  // wait. read_device() takes it over.
  void follow_device(std::function<Plateau()> read) { device_ = std::move(read); }
  void read_device();
  const Plateau& plateau() const { return state_.plateau; }

  // What on_divergence: ROLLBACK has multiplied all rates with.
  float scale() const { return state_.scale; }
  // Steps that the policy has done.
  int steps() const;
  // Counts how often rates given by ahead() have become wrong.
  uint64_t version() const { return version_; }
  void changed() { ++version_; }

  void store(SolverState* state);
  // At an iteration of a run that had this state. The fields decide where they have changed since.
  void restore(const SolverState& state, int64_t iteration);

 private:
  RateState first() const;

  const SolverParameter& solver_;
  EpochLength length_;
  RateState state_;
  int taken_ = 0;  // steps that take_step() knows of
  std::function<Plateau()> device_;
  uint64_t version_ = 1;
};

}  // namespace crema
