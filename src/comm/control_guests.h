// Guests: connections to a listening socket that have not shown yet that they belong to the run.
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

// The time that a guest has for its hello. `timeout` is that of the ranks.
double hello_seconds(double timeout);

class Guests {
 public:
  // For the ranks of these options, all of which may connect at once.
  Guests(Socket listening, const ControlOptions& options);

  void add_to(std::vector<pollfd>* waiting) const;
  // Serve them at this moment even if no socket is readable.
  Moment next() const;
  // Takes the hello and the connection of a guest that has the token.
  using Admit = std::function<void(const Hello& hello, std::unique_ptr<Connection> connection)>;
  // Accepts new guests, reads from all, and drops those that are late or send anything else.
  void serve(const Admit& admit);

  size_t count() const { return guests_.size(); }
  // What has gone wrong, for a message: "" or "; ...".
  std::string problems() const;

 private:
  struct Guest {
    std::unique_ptr<Connection> connection;
    std::string nonce;
    Moment until;
  };

  void accept(Moment now);
  bool stays(Guest& guest, Moment now, const Admit& admit);

  Socket listening_;
  const std::string token_;
  const size_t most_;
  const double seconds_;
  std::list<Guest> guests_;  // the oldest first
  Moment rest_until_;        // nothing is accepted until then
  std::string shortage_, turned_away_;
};

}  // namespace crema
