// How the training loop handles losses and weights that are not finite.
#include <algorithm>
#include <cmath>

#include "solver/divergence/not_finite.h"
#include "solver/iteration/debug_info.h"
#include "solver/iteration/gpu_iteration.h"
#include "solver/ranks/ranks.h"
#include "solver/rates/rates.h"
#include "solver/snapshot/snapshots.h"
#include "solver/solver.h"

namespace crema {

// Reads the losses up to iteration `last` from the GPU, where they stay until they are needed.
void Solver::read_losses(int64_t last) {
  if (!gpu_ || last < unread_) return;
  const RankPause pause(context_);  // while it waits for the GPU, which may wait for other ranks
  for (const float loss : gpu_->losses(unread_, last)) watch(unread_++, loss);
}

// Whether the iteration's update is done: all but those that on_divergence: SKIP leaves out.
// `updates`: there is one.
bool Solver::watch(int64_t iteration, double loss, bool updates) {
  losses_.add(iteration, loss);
  if (std::isfinite(loss)) {
    if (updates) skipped_ = 0;
    return true;
  }
  const auto policy = file_.solver.on_divergence();
  if (policy == SolverParameter::SKIP) {
    if (!updates) return true;
    if (skip_update(iteration, loss)) return false;
  }
  const bool ignored = policy == SolverParameter::IGNORE, stops = !ignored && !rolls_back();
  if (stops || (ignored && !non_finite_reported_))
    send_(event::NonFiniteLoss{iteration, loss, stops});
  non_finite_reported_ = true;
  if (!ignored)
    diverge(iteration, cat("the loss is ", loss), find_divergence(iteration), iteration > 0);
  return true;
}

// False after skip_most in a row.
bool Solver::skip_update(int64_t iteration, double loss) {
  const int most = file_.solver.skip_most();
  if (++skipped_ > most) return false;
  send_(event::UpdateSkipped{iteration, loss, skipped_, most});
  return true;
}

// Checked before a snapshot: after an update the weights may be worthless while every loss so far
// was finite. The gradients of that update are there until the next backward pass.
void Solver::check_weights() {
  if (file_.solver.on_divergence() == SolverParameter::IGNORE) return;
  const auto weights = parameter_not_finite(*net_);
  if (!weights) return;
  const auto gradient = gradient_not_finite(*net_);
  const int64_t iteration = iteration_ - 1;
  diverge(iteration, "the update left weights that are not finite", gradient ? gradient : weights,
          iteration > 0 || !gradient);
}

// A ReLU may hide what went wrong: in oneDNN's, and in some of a GPU's libraries, the larger of nan
// and 0 is 0, so a net whose weights are nan has a loss like that of an untrained one. Called where
// the loss is read, before the iteration's first pass.
void Solver::watch_weights() {
  if (file_.solver.on_divergence() == SolverParameter::IGNORE || iteration_ == first_iteration_)
    return;
  if (optimizer_->weights_may_not_be_finite()) check_weights();
}

// On a CPU, the same for blobs. Only a warning: a net may compute with infinities.
void Solver::forward_watched() {
  const auto found = first_not_finite(*net_, train_passes_++, false);
  if (!found || non_finite_reported_ || !std::isfinite(net_->loss())) return;
  non_finite_reported_ = true;
  send_(event::Warning{cat("Iteration ", iteration_, " has a loss of ", net_->loss(), ", but ",
                           found->text(), ". A ReLU after it may hide that the net diverges")});
}

// Runs the iteration's own passes again, with its own weights, which no update has changed since.
// It must, because blobs share memory and their contents are gone.
std::optional<NotFinite> Solver::find_divergence(int64_t iteration) {
  // Each rank would end its passes somewhere else.
  const std::vector<Node>& nodes = net_->graph().nodes;
  if (std::any_of(nodes.begin(), nodes.end(),
                  [](const Node& node) { return node.layer->asks_ranks(); }))
    return std::nullopt;
  if (debug_) debug_->enable(false);  // a net has one observer
  const int iter_size = file_.solver.iter_size();
  const auto first =
      first_pass_ + static_cast<uint64_t>((iteration - first_iteration_) * iter_size);
  std::optional<NotFinite> found;
  for (int micro = 0; micro < iter_size && !found; ++micro)
    found = first_not_finite(*net_, first + static_cast<uint64_t>(micro));
  return found;
}

void Solver::diverge(int64_t iteration, const std::string& what,
                     const std::optional<NotFinite>& where, bool updated) {
  snapshots_->finish();  // which is then the one to go on from
  std::string position = "With the same data again all blobs are finite";
  if (where) position = cat("It begins in ", where->text());
  if (Communicator* const world = context_.world()) {
    for (const std::string& found : world->gather(where ? position : "")) {
      if (found.empty()) continue;
      position = found;
      break;
    }
  }
  diverged_ = iteration;
  divergence_ = cat(what, ". ", position);
  const bool ends = !rolls_back();  // else run() catches the error
  for (const std::string& line : ends&& where ? where->statistics : std::vector<std::string>())
    send_(event::Debug{line});
  std::string tried;
  if (skipped_ > file_.solver.skip_most())
    tried = cat(" after ", skipped_ - 1, " updates in a row that were left out");
  if (rates_->scale() != 1) tried = cat(" although the rate was multiplied by ", rates_->scale());
  const SolverParameter& solver = file_.solver;
  const std::string advice =
      advice_on(*net_, where,
                {.updated = updated && solver.base_lr() != 0,
                 .base_lr = solver.base_lr(),
                 .weights = join({solver.weights().begin(), solver.weights().end()}, ", ")});
  throw Diverged(cat("in iteration ", iteration, ": ", what, tried, ". ", position, ". ", advice,
                     "; on_divergence: IGNORE goes on regardless. ", snapshots_->resume_hint()));
}

}  // namespace crema
