// What a solver does where several ranks train together, but for the sums of losses and gradients
// (solver/ranks/gradient_exchange) and the merging of tests.
#include "base/error.h"
#include "net/graph.h"
#include "net/records.h"
#include "solver/events/run_identity.h"
#include "solver/iteration/gpu_iteration.h"
#include "solver/iteration/optimizer.h"
#include "solver/ranks/ranks.h"
#include "solver/snapshot/snapshots.h"
#include "solver/solver.h"

namespace crema {
namespace {

// How many records each source of the net has, and a hash of its first.
std::string data_of(const Net& net) {
  std::string text;
  for (const Node& node : net.graph().nodes) {
    if (node.layer->share().all == 0) continue;
    text += cat(text.empty() ? "" : ", ", node.layer->count_records(), " records, first ",
                hex_of(node.layer->hash_of_first()));
  }
  return text;
}

// What the files hold is compared; each machine may have them somewhere else.
SolverParameter without_paths(SolverParameter solver) {
  solver.clear_weights();
  solver.clear_net();
  solver.clear_train_net();
  solver.clear_test_net();
  return solver;
}

}  // namespace

// Ranks that would not train the same are stopped before they begin.
void Solver::join_ranks() {
  Communicator* const world = context_.world();
  if (!world) return;
  const std::string same_files = "give all ranks the same files and flags";
  std::vector<RankFact> facts = {
      {"meaning of batch_size", world->divides_batches ? "total" : "per_gpu",
       "give all ranks the same -batch_mode"},
      {"net", hash_of_text(net_->graph().net), same_files},
      {"solver", hash_of_recipe({}, without_paths(file_.solver)), same_files},
      {"metrics", join(options_.metrics, ","), "give all ranks the same -metrics"},
      {"wish for confusions", options_.confusions ? "yes" : "no", same_files},
      {"wish for pictures", options_.pictures ? "yes" : "no", same_files},
      {"precision", name_of(options_.net.precision), "give all ranks the same -precision"},
      {"training data", data_of(*net_),
       "each rank reads the whole data, so it must be the same everywhere"},
      {"iteration to begin with", cat(iteration_), "give all ranks the same -snapshot"}};
  for (const Parameter& parameter : net_->graph().parameters) {
    facts.push_back(
        {cat("shape of parameter ", parameter.index, " of layer \"", parameter.layer, "\""),
         parameter.shape.str(),
         "it depends on the rank's part of the batch; train with -batch_mode per_gpu"});
  }
  facts.push_back(
      {"first weights", hash_of_weights(*net_), "give all ranks the same -weights or -snapshot"});
  compare_facts(*world, facts);
  context_.log().info(
      cat("Training with ", world->ranks, " ranks through ", world->engine(),
          world->divides_batches ? ": they share each batch" : ": each has batches of its own"));
}

void Solver::obey_together() {
  context_.world()->at_iteration(iteration_);
  const bool regular = snapshots_->regular_after(iteration_);
  if (iteration_ < agreement_->next()) return carry_out(Action::none, regular);
  Agreement::Wish mine;
  while (options_.action) {
    const Action request = options_.action();
    if (request == Action::none) break;
    mine.stop |= request == Action::stop;
    mine.snapshot |= request == Action::snapshot;
    mine.snapshot_stop |= request == Action::snapshot_stop;
  }
  if (context_.rank() == 0) {
    mine.timed_snapshot = !regular && snapshots_->due(iteration_);
    mine.snapshot_stop |= snapshots_->time_is_up(iteration_);
  }
  const Agreement::Wish all = agreement_->exchange(iteration_, mine);
  carry_out(all.snapshot ? Action::snapshot : Action::none, regular || all.timed_snapshot);
  if (all.snapshot_stop) {
    carry_out(Action::snapshot_stop, false);
  } else if (all.stop) {
    carry_out(Action::stop, false);
  }
}

}  // namespace crema
