// If rank 0 is lost, the others have no connections among themselves, but exactly one of them must
// tell the user. Rank 1, its standby, listens for that case: the others ask it whether it does.
#pragma once

#include <poll.h>

#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/control_pending.h"
#include "comm/control_sockets.h"

namespace crema {

// Rank 1's side.
class Standby {
 public:
  // Listens where other ranks come from: on this machine only, or at all addresses.
  Standby(const ControlOptions& options, bool only_here);
  const std::string& address() const { return address_; }

  void add_to(std::vector<pollfd>* waiting) const;
  // serve() has work at this moment even if no socket is readable.
  Moment next() const { return pending_.next(); }
  // Once `teller`, the rank that tells the user, is known, answers the ranks that ask.
  void serve(std::optional<int> teller);
  int answers() const { return answers_; }

 private:
  // A rank that asks.
  struct Asker {
    std::unique_ptr<Connection> connection;
    Moment until;
    bool answered = false;
  };

  const double timeout_;
  const Listening listening_;
  PendingPeers pending_;
  std::string address_;
  std::list<Asker> askers_;
  int answers_ = 0;
};

// The rank that tells the user; nothing when rank 1 does not say so until then.
std::optional<int> ask_standby(const std::string& addresses, const std::string& token,
                               const Handshake& handshake, Moment until);

}  // namespace crema
