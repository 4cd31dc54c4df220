// DivergencePolicy: what on_divergence makes of losses that are not finite. It needs no net.
#pragma once

#include "net/prototxt/prototxt.h"

namespace crema {

// Error, with the position in the file, for values with which ROLLBACK or SKIP cannot work.
void check_divergence(const SolverFile& file);

class DivergencePolicy {
 public:
  enum class Verdict {
    update,     // the loss is finite, or what it is does not matter
    leave_out,  // no update follows (SKIP)
    ignore,     // IGNORE
    diverged,   // the run ends or goes back
  };

  explicit DivergencePolicy(const SolverParameter& solver) : solver_(solver) {}

  // updates: an update follows on this loss.
  Verdict judge(double loss, bool updates);
  // Updates left out in a row; above skip_most the last one was diverged.
  int left_out() const { return left_out_; }

  bool checks_weights() const { return solver_.on_divergence() != SolverParameter::IGNORE; }
  bool rolls_back() const { return solver_.on_divergence() == SolverParameter::ROLLBACK; }
  // How often a run has gone back whose rates are multiplied by `scale`, which snapshots keep.
  int rollbacks(float scale) const;
  // Whether it may go back once more.
  bool may_roll_back(float scale) const {
    return rolls_back() && rollbacks(scale) < solver_.rollback_most();
  }

 private:
  const SolverParameter& solver_;
  int left_out_ = 0;
};

}  // namespace crema
