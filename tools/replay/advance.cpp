#include "tools/replay/advance.h"

#include "base/error.h"

namespace crema {
namespace {

// Thrown between two iterations.
struct Arrived {};

}  // namespace

void Advance::to(Solver& solver, int64_t iteration,
                 const std::vector<RecordedRun::Rollback>& rollbacks) {
  size_t wanted = SIZE_MAX;
  if (!rollbacks.empty()) {
    const auto look = [this, &wanted] {
      if (count_ >= wanted) throw Arrived();
    };
    solver.add_callback({.on_start = look, .on_gradients_ready = {}});
  }
  for (const RecordedRun::Rollback& back : rollbacks) {
    if (solver.iteration() <= back.to) {
      solver.step(back.to - solver.iteration());
      solver.snapshot();
    }
    wanted = count_ + 1;
    try {
      solver.step(back.from + 2 - solver.iteration());
    } catch (const Arrived&) {
    }
    require(count_ == wanted, "the run diverged in iteration ", back.from,
            " and went back to iteration ", back.to,
            ". Here it does not diverge there: what comes after cannot be computed again");
    wanted = SIZE_MAX;
  }
  solver.step(iteration - solver.iteration());
}

void Advance::read(const Event& event) {
  if (std::holds_alternative<event::RolledBack>(event)) ++count_;
}

}  // namespace crema
