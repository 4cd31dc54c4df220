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
  // Where rank 0 listens, "host:port", with several networks "host:port,host:port"; the others try
  // them in order until one answers with the token. Rank 0 listens on the port of the first.
  std::string address;
  // Rank 0: a socket that listens already; -1: none.
  int listening = -1;
  // The same secret on all ranks of a run: a process that connects with another one is turned away.
  std::string token;
  // Seconds that a rank may be silent, or keep the others waiting.
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
  // timeout; also if a rank that others wait for has finished. Error for a text of more than 1 GiB
  // divided by the number of ranks.
  std::vector<std::string> gather(std::string_view text);
  // Records this rank's progress, for messages. Costs nothing.
  void at_iteration(int64_t iteration);
  // Between these the rank may keep the others waiting.
  void begin_pause();
  void end_pause();
  // Between these it waits for the others, elsewhere than in a gather.
  void begin_wait();
  void end_wait();
  // Throws a RankLost once a rank is lost; for one of the remaining ranks told() is false. If rank
  // 0 is lost, that is rank 1. The others ask it; if it does not answer, rank 2 throws such an
  // exception after 2 s and each further rank a second later, since they are not connected to each
  // other.
  void check() const;
  bool lost() const;
  // Calls `work`, from the control's own thread, as soon as a rank is lost or this one has failed;
  // promptly if one is already. Ignores its exceptions.
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
