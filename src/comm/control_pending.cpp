#include "comm/control_pending.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "base/error.h"

namespace crema {
namespace {

constexpr double kHandshakeSeconds = 5;
// Unauthenticated clients that may wait in addition to the ranks. Beyond that the oldest is
// dropped; a rank reconnects.
constexpr size_t kStrangers = 64;
// Delay until the next attempt if the system has no descriptors left, and between two full rounds:
// poll() would otherwise return immediately again and again.
constexpr double kShortageSeconds = 0.1, kRoundSeconds = 0.005;

bool is_shortage(int error) {
  return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
}

}  // namespace

double handshake_seconds(double timeout) { return std::min(kHandshakeSeconds, timeout / 4); }

PendingPeers::PendingPeers(Socket listening, const ControlOptions& options)
    : listening_(std::move(listening)),
      token_(options.token),
      most_(kStrangers + static_cast<size_t>(options.ranks)),
      seconds_(handshake_seconds(options.timeout)) {}

std::string PendingPeers::problems() const {
  return turned_away_ +
         (shortage_.empty() ? "" : cat("; rank 0 could not accept a connection: ", shortage_));
}

void PendingPeers::add_to(std::vector<pollfd>* waiting) const {
  if (ControlClock::now() >= rest_until_) waiting->push_back({listening_.get(), POLLIN, 0});
  for (const PendingPeer& peer : pending_)
    waiting->push_back({peer.connection->descriptor(), peer.connection->events(), 0});
}

Moment PendingPeers::next() const {
  Moment next = pending_.empty() ? Moment::max() : pending_.front().until;
  if (ControlClock::now() < rest_until_) next = std::min(next, rest_until_);
  return next;
}

void PendingPeers::serve(const Admit& admit) {
  const Moment now = ControlClock::now();
  accept(now);
  for (auto peer = pending_.begin(); peer != pending_.end();)
    peer = stays(*peer, now, admit) ? std::next(peer) : pending_.erase(peer);
}

// At most half of all are new, so that none is dropped before it was read.
void PendingPeers::accept(Moment now) {
  if (now < rest_until_) return;
  for (size_t count = 0; count < most_ / 2; ++count) {
    Socket socket = accept_next(listening_);
    if (!socket && is_shortage(errno)) {
      shortage_ = std::strerror(errno);
      if (pending_.empty()) rest_until_ = now + seconds(kShortageSeconds);
      if (pending_.size() <= count) return;  // those are new
      pending_.pop_front();                  // the next one gets its descriptor
      socket = accept_next(listening_);
    }
    if (!socket) return;  // no client waits, or that connection is broken
    if (pending_.size() >= most_) pending_.pop_front();
    PendingPeer peer{std::make_unique<Connection>(std::move(socket), kMaxHandshake), random_nonce(),
                     now + seconds(seconds_)};
    peer.connection->send(challenge_of(peer.nonce));
    peer.connection->flush();
    pending_.push_back(std::move(peer));
  }
  rest_until_ = now + seconds(kRoundSeconds);
}

bool PendingPeers::stays(PendingPeer& peer, Moment now, const Admit& admit) {
  std::optional<Handshake> handshake;
  try {
    std::optional<Frame> first;
    peer.connection->receive([&](Frame&& frame) {
      require(!first, "more than a handshake");
      first = std::move(frame);
    });
    if (peer.connection->ended()) return false;
    if (first) {
      ConnectionKeys keys;
      handshake = read_handshake(*first, token_, peer.nonce, &keys);
      peer.connection->set_keys(std::move(keys));
    }
    peer.connection->flush();
  } catch (const Error&) {
    // No rank of this run. It is not told why.
    turned_away_ = cat("; a process at ", other_end(peer.connection->descriptor()),
                       " was turned away, as it does not have the token of this run");
    return false;
  }
  if (handshake) admit(*handshake, std::move(peer.connection));
  return !handshake && now < peer.until;
}

}  // namespace crema
