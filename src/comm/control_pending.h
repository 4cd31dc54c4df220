// PendingPeers: connections to a listening socket that have not shown yet that they belong to the run.
// Anyone who can reach the port can make them, so their number and their time are limited.
#pragma once

#include <poll.h>

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "comm/control_sockets.h"

namespace crema {

// The time that a pending peer has for its handshake. `timeout` is that of the ranks.
double handshake_seconds(double timeout);

class PendingPeers {
 public:
  // For the ranks of these options, which may all connect at the same time.
  PendingPeers(Socket listening, const ControlOptions& options);

  void add_to(std::vector<pollfd>* waiting) const;
  // Serve them at this moment even if no socket is readable.
  Moment next() const;
  // Takes the handshake and the connection of a pending peer that has the token.
  using Admit =
      std::function<void(const Handshake& handshake, std::unique_ptr<Connection> connection)>;
  // Accepts new clients, reads from all, and drops those that are late or send anything else.
  void serve(const Admit& admit);

  size_t count() const { return pending_.size(); }
  // Problems so far, for a message: "" or "; ...".
  std::string problems() const;

 private:
  struct PendingPeer {
    std::unique_ptr<Connection> connection;
    std::string nonce;
    Moment until;
  };

  void accept(Moment now);
  bool stays(PendingPeer& pending_peer, Moment now, const Admit& admit);

  Socket listening_;
  const std::string token_;
  const size_t most_;
  const double seconds_;
  std::list<PendingPeer> pending_;  // the oldest first
  Moment rest_until_;               // accepts nothing until then
  std::string shortage_, turned_away_;
};

}  // namespace crema
