// WatchedOutput: follows one output of the tests for keep_best, early_stop or plateau_test: its best
// value so far, and how many tests ago that was.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/net.h"
#include "net/prototxt/prototxt.h"
#include "solver/events/events.h"

namespace crema {

// Whether an output of this name gets better as it gets smaller: "loss" or "error" is in it.
bool named_like_a_loss(const std::string& output);

class WatchedOutput {
 public:
  // What follows it; also its place in SolverState's best_values.
  enum class For { keep_best, early_stop, plateau_test };

  // Error, with the position in the solver, when there is no such test net or output, or when no
  // test is ever due. nets[i] is the test net with number numbers[i] in the solver's file;
  // metrics[i]: what its results have besides its outputs.
  WatchedOutput(const SolverFile& file, For purpose, const std::vector<std::unique_ptr<Net>>& nets,
                const std::vector<int>& numbers,
                const std::vector<std::vector<std::string>>& metrics = {});

  // Call with the results of each test of each net. Whether the value is the best so far; none: the
  // results are of another net. A value that is nan is never the best.
  std::optional<bool> observe(int test_net, const std::vector<OutputValue>& results);

  const std::string& output() const { return output_; }
  bool larger_is_better() const { return larger_; }
  // Infinite before the first test.
  float best() const { return best_; }
  int tests_since_best() const { return tests_; }
  // Counts from 0 again: something was done because nothing got better.
  void wait_again() { tests_ = 0; }

  void store(SolverState* state) const;
  // A state that does not have it: starts anew. Error, naming `path`, when the file is damaged.
  void restore(const SolverState& state, const std::string& path);

 private:
  float worst() const {
    return larger_ ? -std::numeric_limits<float>::infinity()
                   : std::numeric_limits<float>::infinity();
  }

  int place_;
  int test_net_;
  std::string output_;
  bool larger_;
  float min_change_;
  float best_;
  int tests_ = 0;
};

}  // namespace crema
