#include "tools/replay/advance.h"

#include <algorithm>
#include <memory>

#include "base/error.h"

namespace crema {
namespace {

// Thrown between two iterations.
struct Arrived {};

}  // namespace

void advance(Solver& solver, int64_t iteration, const RecordedRun::Rollbacks& rollbacks,
             const RollbackCount& seen) {
  if (rollbacks.count == 0) {
    solver.step(iteration - solver.iteration());
    return;
  }
  const auto arrived = std::make_shared<bool>(false);  // callbacks stay with the solver
  solver.add_callback({.on_start =
                           [&solver, &seen, iteration, rollbacks, arrived] {
                             if (*arrived || seen.count < rollbacks.count ||
                                 solver.iteration() != iteration)
                               return;
                             *arrived = true;
                             throw Arrived();
                           },
                       .on_gradients_ready = {}});
  try {
    solver.step(std::max(rollbacks.from, iteration) + 1 - solver.iteration());
  } catch (const Arrived&) {
    return;
  }
  fail("the run went back from iteration ", rollbacks.from,
       ", and what is computed here does not: it rounds in another way; replay a later iteration, "
       "from a snapshot behind that");
}

}  // namespace crema
