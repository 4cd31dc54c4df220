// When a rank counts as lost: the judgement of the control connection's thread.
#include <algorithm>

#include "base/error.h"
#include "comm/control_connections.h"

namespace crema {

void Control::Connections::judge(Moment now) {
  judge_silence(now);
  judge_gather(now);
  if (rank_ == 0) judge_steps(now);
}

void Control::Connections::note_steps(int rank, int64_t steps, bool waiting, Moment now) {
  Peer& peer = peers_[rank];
  if (steps != peer.steps || peer.stepped == Moment()) peer.stepped = now;
  peer.steps = steps;
  peer.waiting = waiting;
}

// A sum in which others wait needs no gather: who keeps them waiting makes no step, and does not
// wait itself.
void Control::Connections::judge_steps(Moment now) {
  bool others_wait = false;
  std::vector<int> hanging;
  for (int rank = 0; rank < ranks_; ++rank) {
    const Peer& peer = peers_[rank];
    const bool stands = now - std::max(peer.stepped, excused_[rank]) > seconds(timeout_);
    if (peer.done || peer.stepped == Moment() || !stands) continue;
    if (peer.waiting || collection_.texts[rank]) {
      others_wait = true;
    } else {
      hanging.push_back(rank);
    }
  }
  if (!others_wait || hanging.empty()) return;
  lose(hanging, cat(hanging.size() == 1 ? "hangs" : "hang", iteration_of(hanging[0]),
                    ": others have waited for it for ", timeout_, " s"));
}

void Control::Connections::judge_silence(Moment now) {
  std::vector<int> silent;
  for (int rank = 0; rank < ranks_; ++rank) {
    const Peer& peer = peers_[rank];
    if (peer.connection && !peer.done && now - peer.heard > seconds(timeout_))
      silent.push_back(rank);
  }
  if (silent.empty()) return;
  lose(silent,
       cat(silent.size() == 1 ? "has" : "have", " been silent for ", timeout_, " s",
           iteration_of(silent[0]), ": the process or its machine hangs, or the network does"));
}

void Control::Connections::judge_gather(Moment now) {
  if (rank_ != 0) {
    if (waits_ && peers_[0].done)
      lose({0}, cat("is done", iteration_of(0), ", but others wait for it"));
    return;
  }
  if (collection_.count == 0) return;
  std::vector<int> done, hanging;
  for (int rank = 0; rank < ranks_; ++rank) {
    if (collection_.texts[rank]) continue;
    if (peers_[rank].done) {
      done.push_back(rank);
    } else if (now - std::max(collection_.since, excused_[rank]) > seconds(timeout_)) {
      hanging.push_back(rank);
    }
  }
  if (!done.empty()) {
    lose(done, cat(done.size() == 1 ? "is" : "are", " done", iteration_of(done[0]),
                   ", but others wait for it: the ranks have not done the same"));
  } else if (!hanging.empty()) {
    lose(hanging, cat(hanging.size() == 1 ? "hangs" : "hang", iteration_of(hanging[0]),
                      ": others have waited for it for ", timeout_, " s"));
  }
}

}  // namespace crema
