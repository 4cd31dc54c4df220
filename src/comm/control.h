// Control: a connection from each rank to rank 0, over which ranks find each other, exchange texts
// (NCCL's id among them) and notice that one of them has ended or hangs. Values are summed
// elsewhere (comm/engine.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "device/communicator.h"

namespace crema {

struct ControlOptions {
  int rank = 0, ranks = 1;
  // Where rank 0 listens, "host:port", of several networks "host:port,host:port"; the others try
  // them in turn until one answers with the token. Rank 0 listens on the port of the first.
  std::string address;
  // Rank 0: a socket that listens already; -1: none.
  int listening = -1;
  // The same secret on all ranks of a run: a process that connects with another one is turned away.
  std::string token;
  // How long a rank may be silent, or keep the others waiting, in seconds.
  double timeout = 60;
  // Where rank 0 writes a random token and the others read it (comm/token_file.h). Empty: `token`.
  std::string token_file;
};

class Control {
 public:
  // Returns once all ranks have met. Error after the timeout: which ranks have not come; a RankLost
  // on ranks that have, as rank 0 says so.
  explicit Control(const ControlOptions& options);
  // Tells the others that this rank is done, in at most 2 s. While an exception is in flight it
  // tells them that it has failed (see fail()).
  ~Control();
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  // Texts of all ranks, by rank, from one thread. Throws a RankLost, at the latest after the
  // timeout; also where a rank that others wait for is done. Error for a text of more than 1 GiB
  // divided by the number of ranks.
  std::vector<std::string> gather(std::string_view text);
  // How far this rank is, for messages. Costs nothing.
  void at_iteration(int64_t iteration);
  // Between these the rank may keep the others waiting.
  void begin_pause();
  void end_pause();
  // Between these it waits for the others, elsewhere than in a gather.
  void begin_wait();
  void end_wait();
  // Throws a RankLost once a rank is lost; of one rank that is left told() is false. If rank 0 is
  // lost, that is rank 1; the others ask it, and where it does not answer, rank 2 throws such a one
  // after 2 s and each further rank a second later, as they know nothing of each other.
  void check() const;
  bool lost() const;
  // Calls `work`, from the control's own thread, as soon as a rank is lost or this one has failed;
  // soon if one is already. What it throws is ignored.
  void when_lost(std::function<void()> work);
  // This rank has failed and says so itself: the other ranks end without saying more. Its own calls
  // throw a RankLost from then on.
  void fail();

 private:
  class Connections;
  const int exceptions_;  // in flight when it was made
  std::unique_ptr<Connections> connections_;
};

// A socket that listens on any free port of this machine, and that port.
struct Listening {
  int socket = -1, port = 0;
};
Listening listen_anywhere();
// The addresses of this machine that others may reach, the fastest networks first, without the
// loopback unless there is no other.
std::vector<std::string> own_addresses();

}  // namespace crema
