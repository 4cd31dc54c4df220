// What a resumed run says of the fields that have changed.
#include "net/records.h"
#include "proto/solver.pb.h"
#include "solver/fields/recorded_recipe.h"
#include "solver/rates/rates.h"
#include "solver/solver.h"
#include "solver/test/test_watch.h"

namespace crema {

void Solver::store_watches(SolverState* state) const {
  for (const auto* watched : {keep_best_.get(), early_stop_.get(), plateau_test_.get()}) {
    if (watched) watched->store(state);
  }
}

// Samples in a training pass, of all ranks that share it.
int64_t Solver::batch_of_ranks() const {
  const int64_t of_ranks = net_->share().all;
  return of_ranks > 0 ? of_ranks : batch_of(*net_);
}

// A resumed run does what its solver's file says now; what differs from the run before is said once.
void Solver::report_changes(const SolverState& state, const std::string& path) {
  std::vector<std::string> changes = changes_since(state.recipe(), file_.solver);
  const int64_t batch = batch_of_ranks();
  if (state.has_batch() && state.batch() != batch)
    changes.push_back(cat("the batch was ", state.batch(), " and is ", batch,
                          " (the place in the data is counted in batches of ", batch, ")"));
  const bool recorded = state.has_recipe();
  if (!recorded && file_.solver.lr_policy() == "multistep" && state.has_current_step() &&
      state.current_step() != rates_->steps()) {
    changes.push_back(cat("the rate had done ", state.current_step(), " steps, but ",
                          rates_->steps(), " of the stepvalues are before iteration ", iteration_));
  }
  if (iteration_ > file_.solver.max_iter() && file_.solver.has_max_iter())
    context_.log().warning(cat(path, " is from iteration ", iteration_, ", beyond max_iter ",
                               file_.solver.max_iter(), " of ", file_.path,
                               ": nothing is left to train; raise max_iter"));
  if (changes.empty()) return;
  context_.log().warning(cat(file_.path, " differs from the solver that wrote ", path, ": ",
                             join(changes, "; "), ". From iteration ", iteration_,
                             " on this file holds: the learning rate is ", rate()));
}

}  // namespace crema
