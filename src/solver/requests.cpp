#include "solver/requests.h"

#include "device/communicator.h"
#include "solver/ranks/ranks.h"
#include "solver/snapshot/snapshots.h"

namespace crema {

void Requests::obey(int64_t iteration) {
  snapshots_.poll();
  if (ranks_.several()) return obey_together(iteration);
  const Action request = action_ ? action_() : Action::none;
  carry_out(iteration, request, snapshots_.due(iteration));
  if (!stopped_ && snapshots_.time_is_up(iteration))
    carry_out(iteration, Action::snapshot_stop, false);
}

void Requests::obey_together(int64_t iteration) {
  context_.world()->at_iteration(iteration);
  const bool regular = snapshots_.regular_after(iteration);
  if (!ranks_.agree_at(iteration)) return carry_out(iteration, Action::none, regular);
  Agreement::Wish mine;
  while (action_) {
    const Action request = action_();
    if (request == Action::none) break;
    mine.stop |= request == Action::stop;
    mine.snapshot |= request == Action::snapshot;
    mine.snapshot_stop |= request == Action::snapshot_stop;
  }
  if (context_.rank() == 0) {
    mine.timed_snapshot = !regular && snapshots_.due(iteration);
    mine.snapshot_stop |= snapshots_.time_is_up(iteration);
  }
  const Agreement::Wish all = ranks_.agree(iteration, mine);
  carry_out(iteration, all.snapshot ? Action::snapshot : Action::none,
            regular || all.timed_snapshot);
  if (all.snapshot_stop) {
    carry_out(iteration, Action::snapshot_stop, false);
  } else if (all.stop) {
    carry_out(iteration, Action::stop, false);
  }
}

void Requests::carry_out(int64_t iteration, Action request, bool snapshot_is_due) {
  const bool asked = request == Action::snapshot || request == Action::snapshot_stop;
  if (asked) snapshots_.finish();  // it may be the one that is wanted
  const bool wanted = asked && agreed(context_, snapshots_.last_written() != iteration);
  if (snapshot_is_due || wanted) snapshots_.begin_or_log(iteration);
  if (request == Action::stop || request == Action::snapshot_stop) stopped_ = true;
}

// Ranks agree about requests between iterations only: in a test they are at different batches.
bool Requests::obey_in_test(int64_t iteration) {
  while (action_ && !ranks_.several()) {
    const Action request = action_();
    if (request == Action::none) break;
    carry_out(iteration, request, false);
  }
  return stopped_;
}

}  // namespace crema
