#include "solver/divergence/divergence_guard.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "device/communicator.h"
#include "device/memory.h"
#include "solver/iteration/debug_info.h"
#include "solver/iteration/optimizer.h"
#include "solver/ranks/ranks.h"
#include "solver/rates/rates.h"
#include "solver/snapshot/snapshots.h"

namespace crema {

void DivergenceGuard::begin(int64_t iteration, uint64_t pass) {
  first_iteration_ = iteration;
  first_pass_ = pass;
}

bool DivergenceGuard::judge(int64_t iteration, double loss, bool updates) {
  using Verdict = DivergencePolicy::Verdict;
  const Verdict verdict = policy_.judge(loss, updates);
  if (verdict == Verdict::update) return true;
  if (verdict == Verdict::leave_out) {
    run_.send(
        event::UpdateSkipped{iteration, loss, policy_.left_out(), run_.file.solver.skip_most()});
    return false;
  }
  const bool ignored = verdict == Verdict::ignore, stops = !ignored && !rolls_back();
  if (stops || (ignored && !reported_)) run_.send(event::NonFiniteLoss{iteration, loss, stops});
  reported_ = true;
  if (!ignored) diverge(iteration, cat("the loss is ", loss), find(iteration), iteration > 0);
  return true;
}

// After an update the weights may be worthless while every loss so far was finite. The gradients of
// that update are there until the next backward pass.
void DivergenceGuard::check_weights(int64_t iteration) {
  if (!policy_.checks_weights()) return;
  const auto weights = parameter_not_finite(run_.net);
  if (!weights) return;
  const auto gradient = gradient_not_finite(run_.net);
  const int64_t last = iteration - 1;
  diverge(last, "the update left weights that are not finite", gradient ? gradient : weights,
          last > 0 || !gradient);
}

void DivergenceGuard::watch_weights(int64_t iteration) {
  if (!policy_.checks_weights() || iteration == first_iteration_) return;
  if (run_.optimizer.weights_may_not_be_finite()) check_weights(iteration);
}

void DivergenceGuard::watch_forward(int64_t iteration, uint64_t pass) {
  const auto found = first_not_finite(run_.net, pass, false);
  if (!found || reported_ || !std::isfinite(run_.net.loss())) return;
  reported_ = true;
  run_.send(
      event::Warning{cat("Iteration ", iteration, " has a loss of ", run_.net.loss(), ", but ",
                         found->text(), ". A ReLU after it may hide that the net diverges")});
}

// Runs the iteration's own passes again, with its own weights, which no update has changed since.
// It must, because blobs share memory and their contents are gone.
std::optional<NotFinite> DivergenceGuard::find(int64_t iteration) {
  // Each rank would end its passes somewhere else.
  const std::vector<Node>& nodes = run_.net.graph().nodes;
  if (std::any_of(nodes.begin(), nodes.end(),
                  [](const Node& node) { return node.layer->traits().asks_ranks; }))
    return std::nullopt;
  if (run_.debug) run_.debug->enable(false);  // a net has one observer
  const int iter_size = run_.file.solver.iter_size();
  const auto first =
      first_pass_ + static_cast<uint64_t>((iteration - first_iteration_) * iter_size);
  std::optional<NotFinite> found;
  for (int micro = 0; micro < iter_size && !found; ++micro)
    found = first_not_finite(run_.net, first + static_cast<uint64_t>(micro));
  return found;
}

void DivergenceGuard::diverge(int64_t iteration, const std::string& what,
                              const std::optional<NotFinite>& where, bool updated) {
  const SolverParameter& solver = run_.file.solver;
  run_.snapshots.finish();  // which is then the one to go on from
  std::string position = "With the same data again all blobs are finite";
  if (where) position = cat("It begins in ", where->text());
  if (Communicator* const world = run_.net.context().world()) {
    for (const std::string& found : world->gather(where ? position : "")) {
      if (found.empty()) continue;
      position = found;
      break;
    }
  }
  diverged_ = iteration;
  reason_ = cat(what, ". ", position);
  if (where && !rolls_back()) {
    for (const std::string& line : where->statistics) run_.send(event::Debug{line});
  }
  std::string tried;
  if (policy_.left_out() > solver.skip_most())
    tried = cat(" after ", policy_.left_out() - 1, " updates in a row that were left out");
  if (run_.rates.scale() != 1)
    tried = cat(" although the rate was multiplied by ", run_.rates.scale());
  const std::string advice =
      advice_on(run_.net, where,
                {.updated = updated && solver.base_lr() != 0,
                 .base_lr = solver.base_lr(),
                 .weights = join({solver.weights().begin(), solver.weights().end()}, ", ")});
  throw Diverged(cat("in iteration ", iteration, ": ", what, tried, ". ", position, ". ", advice,
                     "; on_divergence: IGNORE goes on regardless. ", run_.snapshots.resume_hint()));
}

void DivergenceGuard::keep_start(const std::function<void(SolverState*)>& store) {
  Context& context = run_.net.context();
  if (!policy_.rolls_back() || start_ || !agreed(context, run_.snapshots.last_state().empty()))
    return;
  start_ = std::make_unique<Start>();
  store(&start_->state);
  run_.optimizer.store(&start_->state);
  const Tensor weights = run_.net.parameter_arena();
  start_->weights.resize(static_cast<size_t>(weights.count()) * size_of(weights.dtype()));
  copy_bytes(context, start_->weights.data(), Device::cpu, weights.raw(), context.device(),
             start_->weights.size());
}

void DivergenceGuard::restore_start_weights() {
  Context& context = run_.net.context();
  copy_bytes(context, run_.net.parameter_arena().raw(), context.device(), start_->weights.data(),
             Device::cpu, start_->weights.size());
}

bool DivergenceGuard::rolls_back() const {
  return (start_ || !run_.snapshots.last_state().empty()) &&
         policy_.may_roll_back(run_.rates.scale());
}

event::RolledBack DivergenceGuard::rolled_back(int64_t to, const std::string& state) const {
  const float scale = run_.rates.scale();
  return {diverged_, to, state, reason_, policy_.rollbacks(scale), run_.file.solver.rollback_most(),
          scale};
}

}  // namespace crema
