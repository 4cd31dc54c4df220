#include "tools/runs/stop_advice.h"

#include "base/strings.h"

namespace crema {

void StopAdvice::read(const Event& event) {
  if (const auto* start = std::get_if<event::Start>(&event)) {
    max_iter_ = start->max_iter;
  } else if (const auto* done = std::get_if<event::SnapshotDone>(&event)) {
    if (done->state.empty()) return;
    state_ = done->state;
    iteration_ = done->iteration;
  } else if (std::get_if<event::EarlyStopped>(&event)) {
    by_itself_ = true;
  } else if (const auto* end = std::get_if<event::End>(&event)) {
    if (!end->early || by_itself_) return;
    const std::string stopped = cat("Stopped after iteration ", end->iteration, " of ", max_iter_);
    if (state_.empty()) {
      log_.warning(stopped +
                   ", without a snapshot: it cannot continue from here (-sigint_effect "
                   "snapshot_stop always writes one)");
      return;
    }
    const std::string from =
        iteration_ == end->iteration ? "" : cat(" from the snapshot of iteration ", iteration_);
    log_.info(cat(stopped, ". Continue", from, " with: ", command_(state_)));
  }
}

}  // namespace crema
