// When rank 0 is lost, the others have no connection among themselves, but one of them alone shall
// tell the user. Rank 1, its deputy, listens for that case: the others ask it whether it does.
#pragma once

#include <poll.h>

#include <list>
#include <optional>
#include <string>
#include <vector>

#include "comm/control_sockets.h"

namespace crema {

// A rank's first words, to rank 0 and to its deputy.
struct Hello {
  int64_t ranks = 1, rank = 0;
  std::string token, host;
  std::string deputy;  // of rank 1: where it listens
};
Bytes frame_of(const Hello& hello);
Hello read_hello(const Frame& frame);  // Error when it is none

// Rank 1's side.
class Deputy {
 public:
  // Listens where other ranks come from: on this machine only, or at all addresses.
  Deputy(const std::string& token, bool only_here);
  const std::string& address() const { return address_; }

  void add_to(std::vector<pollfd>* waiting) const;
  // Once `teller`, the rank that tells the user, is known, answers those who ask.
  void serve(std::optional<int> teller);
  int answers() const { return answers_; }

 private:
  struct Guest {
    Connection connection;
    bool asks = false, answered = false;
  };

  Socket listening_;
  std::string token_, address_;
  std::list<Guest> guests_;
  int answers_ = 0;
};

// The rank that tells the user; nothing when rank 1 does not say so until then.
std::optional<int> ask_deputy(const std::string& addresses, const Hello& hello, Moment until);

}  // namespace crema
