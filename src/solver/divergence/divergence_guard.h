// DivergenceGuard: watches losses and weights of a run for nan and infinities, says where they begin,
// and keeps what on_divergence: ROLLBACK goes back to as long as there is no snapshot.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "proto/solver.pb.h"
#include "solver/divergence/divergence_policy.h"
#include "solver/divergence/not_finite.h"
#include "solver/events/events.h"

namespace crema {

class DebugInfo;
class Optimizer;
class Rates;
class Snapshots;

class DivergenceGuard {
 public:
  // All of it must outlive this.
  struct Run {
    const SolverFile& file;
    Net& net;
    Optimizer& optimizer;
    const Rates& rates;
    Snapshots& snapshots;
    EventSender& send;
    DebugInfo* debug;  // null: nothing else observes the net
  };
  explicit DivergenceGuard(const Run& run) : run_(run), policy_(run.file.solver) {}

  // Iterations follow from this one on, whose first pass is `pass`.
  void begin(int64_t iteration, uint64_t pass);
  // Judges the loss of an iteration. Returns whether its update is to be done; `updates`: there is
  // one. Throws Diverged.
  bool judge(int64_t iteration, double loss, bool updates = true);
  // Looks for weights that are not finite after so many updates. Throws Diverged. All ranks.
  void check_weights(int64_t iteration);
  // The same where the loss is read, before the iteration's first pass. A ReLU may hide what went
  // wrong: in oneDNN's, and in some of a GPU's libraries, the larger of nan and 0 is 0, so a net whose
  // weights are nan has a loss like that of an untrained one.
  void watch_weights(int64_t iteration);
  // Runs a forward pass and looks at its blobs. Only a warning: a net may compute with infinities.
  void watch_forward(int64_t iteration, uint64_t pass);

  // With ROLLBACK and no snapshot yet: keeps what the run begins with. `store` adds its numbers.
  void keep_start(const std::function<void(SolverState*)>& store);
  // The start, if it is kept; its weights go back into the net.
  SolverState* start() { return start_ ? &start_->state : nullptr; }
  void restore_start_weights();
  // Whether a Diverged makes the run go back.
  bool rolls_back() const;
  // What to say after it has, to an iteration and a state ("": the start).
  event::RolledBack rolled_back(int64_t to, const std::string& state) const;

 private:
  // In host memory.
  struct Start {
    SolverState state;
    std::vector<char> weights;
  };

  std::optional<NotFinite> find(int64_t iteration);
  // updated: an update has changed the weights that are to blame.
  [[noreturn]] void diverge(int64_t iteration, const std::string& what,
                            const std::optional<NotFinite>& where, bool updated);

  Run run_;
  DivergencePolicy policy_;
  std::unique_ptr<Start> start_;
  int64_t first_iteration_ = 0;  // of begin()
  uint64_t first_pass_ = 0;
  bool reported_ = false;  // that something is not finite
  int64_t diverged_ = 0;   // the iteration of the last divergence, and why
  std::string reason_;
};

}  // namespace crema
