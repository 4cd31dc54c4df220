#include "comm/control_guests.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "base/error.h"

namespace crema {
namespace {

constexpr double kHelloSeconds = 5;
// Strangers that may wait beside the ranks. Above that the oldest is dropped; a rank comes again.
constexpr size_t kStrangers = 64;
// Until the next attempt when the system has no descriptor left, and between two full rounds: poll()
// would return at once again and again.
constexpr double kShortageSeconds = 0.1, kRoundSeconds = 0.005;

bool is_shortage(int error) {
  return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
}

}  // namespace

double hello_seconds(double timeout) { return std::min(kHelloSeconds, timeout / 4); }

Guests::Guests(Socket listening, const ControlOptions& options)
    : listening_(std::move(listening)),
      token_(options.token),
      most_(kStrangers + static_cast<size_t>(options.ranks)),
      seconds_(hello_seconds(options.timeout)) {}

std::string Guests::problems() const {
  return turned_away_ +
         (shortage_.empty() ? "" : cat("; rank 0 could not accept a connection: ", shortage_));
}

void Guests::add_to(std::vector<pollfd>* waiting) const {
  if (ControlClock::now() >= rest_until_) waiting->push_back({listening_.get(), POLLIN, 0});
  for (const Guest& guest : guests_)
    waiting->push_back({guest.connection->descriptor(), guest.connection->events(), 0});
}

Moment Guests::next() const {
  Moment next = guests_.empty() ? Moment::max() : guests_.front().until;
  if (ControlClock::now() < rest_until_) next = std::min(next, rest_until_);
  return next;
}

void Guests::serve(const Admit& admit) {
  const Moment now = ControlClock::now();
  accept(now);
  for (auto guest = guests_.begin(); guest != guests_.end();)
    guest = stays(*guest, now, admit) ? std::next(guest) : guests_.erase(guest);
}

// At most half of all are new, so that none is dropped before it was read.
void Guests::accept(Moment now) {
  if (now < rest_until_) return;
  for (size_t count = 0; count < most_ / 2; ++count) {
    Socket socket = accept_next(listening_);
    if (!socket && is_shortage(errno)) {
      shortage_ = std::strerror(errno);
      if (guests_.empty()) rest_until_ = now + seconds(kShortageSeconds);
      if (guests_.size() <= count) return;  // those are new
      guests_.pop_front();                  // the next one gets its descriptor
      socket = accept_next(listening_);
    }
    if (!socket) return;  // nobody waits, or that connection is broken
    if (guests_.size() >= most_) guests_.pop_front();
    Guest guest{std::make_unique<Connection>(std::move(socket), kMaxHello), random_nonce(),
                now + seconds(seconds_)};
    guest.connection->send(challenge_of(guest.nonce));
    guest.connection->flush();
    guests_.push_back(std::move(guest));
  }
  rest_until_ = now + seconds(kRoundSeconds);
}

bool Guests::stays(Guest& guest, Moment now, const Admit& admit) {
  std::optional<Hello> hello;
  try {
    std::optional<Frame> first;
    guest.connection->receive([&](Frame&& frame) {
      require(!first, "a guest says more than hello");
      first = std::move(frame);
    });
    if (guest.connection->ended()) return false;
    if (first) {
      ConnectionKeys keys;
      hello = read_hello(*first, token_, guest.nonce, &keys);
      guest.connection->set_keys(std::move(keys));
    }
    guest.connection->flush();
  } catch (const Error&) {
    // No rank of this run. It is not told why.
    turned_away_ = cat("; a process at ", other_end(guest.connection->descriptor()),
                       " was turned away, as it does not have the token of this run");
    return false;
  }
  if (hello) admit(*hello, std::move(guest.connection));
  return !hello && now < guest.until;
}

}  // namespace crema
