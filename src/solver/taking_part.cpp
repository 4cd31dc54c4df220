// What programs call that take part in a training, as Python's do.
#include "base/error.h"
#include "solver/iteration/optimizer.h"
#include "solver/rates/rates.h"
#include "solver/solver.h"

namespace crema {

void Solver::add_callback(IterationCallback callback) { callbacks_.push_back(std::move(callback)); }

void Solver::apply_update() {
  require(options_.net.precision != Precision::fp16,
          "apply_update(): with precision fp16 gradients are scaled, which only whole iterations "
          "know of; use bf16");
  if (optimizer_->sharded()) optimizer_->reduce_gradients();
  optimizer_->update(rate(), iteration_);
  net_->parameters_changed();
  context_.synchronize();
}

void Solver::set_base_rate(double rate) {
  require(rate >= 0, "base_lr: ", rate, ": expected a number that is not negative");
  file_.solver.set_base_lr(static_cast<float>(rate));
  rates_->changed();
}

void Solver::set_max_iterations(int64_t iterations) {
  require(iterations >= 0 && iterations <= INT32_MAX, "max_iter: ", iterations,
          ": expected a number of iterations");
  file_.solver.set_max_iter(static_cast<int32_t>(iterations));
  rates_->changed();  // some policies end there
}

void Solver::set_display(int64_t iterations) {
  require(iterations >= 0 && iterations <= INT32_MAX, "display: ", iterations,
          ": expected a number of iterations, or 0 for never");
  file_.solver.set_display(static_cast<int32_t>(iterations));
}

}  // namespace crema
