// What a snapshot keeps of a run, and how a run goes on from it.
#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "net/records.h"
#include "proto/solver.pb.h"
#include "solver/compression/pruning.h"
#include "solver/divergence/divergence_guard.h"
#include "solver/events/checksum.h"
#include "solver/fields/recorded_recipe.h"
#include "solver/iteration/iteration.h"
#include "solver/iteration/optimizer.h"
#include "solver/rates/rates.h"
#include "solver/snapshot/recurrent_state.h"
#include "solver/snapshot/snapshots.h"
#include "solver/snapshot/state_file.h"
#include "solver/solver.h"
#include "solver/test/tests.h"

namespace crema {
namespace {

std::vector<Net*> recurrent_nets(Net& net, const Tests& tests, const SolverParameter& solver) {
  std::vector<Net*> nets = {&net};
  if (solver.test_epoch()) return nets;  // a test begins with zeros
  for (const auto& tested : tests.nets()) nets.push_back(tested.get());
  return nets;
}

// Samples in a training pass, of all ranks that share it.
int64_t batch_of_ranks(const Net& net) {
  const int64_t of_ranks = net.share().all;
  return of_ranks > 0 ? of_ranks : batch_of(net);
}

}  // namespace

// All but the optimizer's state.
void Solver::store(SolverState* state) {
  state->set_iter(static_cast<int32_t>(iteration_));
  rates_->store(state);
  tests_->store(state);
  store_recurrent(recurrent_nets(*net_, *tests_, file_.solver), state);
  iterations_->store(state);
  state->set_seed(seed_);
  state->set_train_passes(train_passes_);
  if (const int64_t of_ranks = net_->share().all; of_ranks > 0 || samples_before_ > 0) {
    state->set_samples_per_pass(of_ranks > 0 ? of_ranks : batch_of(*net_));
    state->set_samples_before(samples_before_);
  }
  for (float loss : losses_.store(iteration_)) state->add_loss_window(loss);
  state->set_net_fingerprint(fingerprint_of(net_->graph()));
  state->set_recipe(recorded_recipe(file_.solver));
  state->set_batch(batch_of_ranks(*net_));
}

void Solver::restore(const std::string& path) {
  const std::string state_path = find_solver_state(path);
  restore(read_solver_state(state_path), state_path);
}

void Solver::restore(const SolverState& state, const std::string& path) {
  snapshots_->finish();
  require(state.iter() >= 0, path, ": iter is ", state.iter(), ": the file is damaged");
  // The start of this run keeps its weights elsewhere.
  const bool of_start = &state == guard_->start();
  std::string weights;
  if (!of_start && !net_->parameters().empty()) weights = find_snapshot_weights(state, path);
  check_same_history(state.recipe(), file_.solver, path);
  const std::vector<std::string> lacking = optimizer_->restore(state, path);
  if (pruning_) pruning_->restart();
  require(!state.has_net_fingerprint() || state.net_fingerprint() == fingerprint_of(net_->graph()),
          path, ": is a snapshot of another net: the names of the layers with parameters differ");
  if (!weights.empty()) {
    const LoadReport report = load_weights(*net_, weights, {WeightsMode::strict, false});
    for (const LoadedLayer& layer : report.layers) {
      require(layer.outcome != LoadedLayer::Outcome::missing, path, ": its weights, ", weights,
              ", have no layer \"", layer.name,
              "\", which would go on from random values: they are of another net");
    }
  }
  require(!state.has_weights_checksum() || state.weights_checksum() == weights_checksum(*net_),
          path, ": ", weights,
          " does not hold the weights of this snapshot: another run has overwritten it. To start "
          "anew from those weights use "
          "-weights");
  net_->parameters_changed();
  for (const std::string& field : lacking) {
    optimizer_->restart(field);
    const char* what = field == "ema_decay" ? "average of the weights" : "slow weights";
    context_.log().warning(cat(path, ": holds no ", what, " (", field, "): it starts anew"));
  }
  iteration_ = unread_ = state.iter();
  identity_.resumed_from = path;
  if (state.has_seed() && file_.solver.random_seed() < 0) context_.seed = seed_ = state.seed();
  // A state of Caffe has no data position: as in Caffe, the data start over.
  count_passes(state);
  losses_.restore(iteration_, {state.loss_window().begin(), state.loss_window().end()});
  rates_->restore(state, iteration_);
  tests_->restore(state, path);
  iterations_->restore(state);
  if (!of_start) report_changes(state, path);
  if (!of_start) snapshots_->resumed_from(state, path);
  restore_recurrent(state, recurrent_nets(*net_, *tests_, file_.solver));
  send_(event::Restored{file_.solver.type(), iteration_});
}

// A snapshot counts passes of all the ranks that there were. With other ranks now, or another batch,
// the data go on where they were.
void Solver::count_passes(const SolverState& state) {
  train_passes_ = state.train_passes();
  samples_before_ = 0;
  Communicator* const world = context_.world();
  if (!state.has_samples_per_pass() && !world) return;
  const BatchShare share = net_->share();
  const int64_t now = share.all > 0 ? share.all : batch_of(*net_);
  if (now == 0) return;
  // One rank does not say what it takes: the batch of the file.
  const int64_t of_one = world && world->divides_batches ? now : share.count;
  const int64_t each = state.has_samples_per_pass() ? state.samples_per_pass() : of_one;
  const int64_t used = state.samples_before() + static_cast<int64_t>(train_passes_) * each;
  train_passes_ = static_cast<uint64_t>(used / now);
  samples_before_ = used % now;
  for (const auto& [node, source] : sources_of(net_->graph())) source.skip_samples(samples_before_);
}

// A resumed run does what its solver's file says now; what differs from the run before is said once.
void Solver::report_changes(const SolverState& state, const std::string& path) {
  std::vector<std::string> changes = changes_since(state.recipe(), file_.solver);
  const int64_t batch = batch_of_ranks(*net_);
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

// Each restores everything, so that nothing is left of one that failed half-way.
void Solver::restore_first_whole(SolverState state, std::string path) {
  for (const std::string& older : options_.older_snapshots) {
    try {
      return restore(state, path);
    } catch (const DeviceLost&) {
      throw;
    } catch (const FileError&) {  // not damaged: going on from an older one would overwrite it
      throw;
    } catch (const Error& error) {
      context_.log().warning(cat("-snapshot auto passes over ", error.what()));
    }
    context_.log().info("Going on from an older snapshot, " + older);
    path = older;
    state = read_solver_state(path);
  }
  restore(state, path);
}

}  // namespace crema
