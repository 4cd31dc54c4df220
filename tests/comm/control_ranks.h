// Ranks with a control connection each: threads, or processes that can be stopped and killed.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "comm/control.h"
#include "comm/control_keys.h"
#include "comm/control_sockets.h"
#include "support.h"

namespace crema::tests {

using RankWork = std::function<void(Control& control, int rank)>;

// The result of a rank.
struct RankResult {
  bool met = false;   // it had a Control
  bool lost = false;  // it threw a RankLost
  bool told = false;
  std::string error;   // the message of its exception; "" if there was none
  double seconds = 0;  // from the start
};

// Does the work with a Control, and returns its exception's message.
RankResult result_of(const ControlOptions& options, const RankWork& work);

// Options of `ranks` ranks on this machine; rank 0 listens already.
std::vector<ControlOptions> options_of(int ranks, double timeout);

// The bytes of a frame without keys.
std::string raw(const Bytes& frame);
// A connection that has sent its handshake to this address. The answer has not been read yet.
std::unique_ptr<Connection> greet(const std::string& address, const std::string& token,
                                  const Handshake& handshake);

// Sent by a client without the token.
const Handshake kHandshake = {3, 1, "stranger", ""};
// What a rank with the token has answered to another challenge.
std::string recorded_handshake();
// Whether the other side closes this connection by then.
bool is_closed_there(int socket, Moment until);

// One thread each; returns when all are done.
std::vector<RankResult> run_threads(const std::vector<ControlOptions>& options,
                                    const RankWork& work);
std::vector<RankResult> run_threads(int ranks, double timeout, const RankWork& work);

// Counts the ranks that have reached a point, also across processes.
class Count {
 public:
  Count();
  ~Count();
  Count(const Count&) = delete;
  Count& operator=(const Count&) = delete;
  void add() const { ++*count_; }
  // A failure of the test when it takes longer than 20 s.
  void wait_for(int count) const;

 private:
  std::atomic<int>* count_;  // One process each. Processes that still run at the end are killed.
};

// One process each. What still runs at the end is killed.
class RankProcesses {
 public:
  RankProcesses(int ranks, double timeout, const RankWork& work);
  ~RankProcesses();
  RankProcesses(const RankProcesses&) = delete;
  RankProcesses& operator=(const RankProcesses&) = delete;

  pid_t pid(int rank) const { return pids_[rank]; }
  void signal(int rank, int number) const;
  // Waits for its end; only `met` is set if a signal ended it.
  RankResult result(int rank);

 private:
  std::vector<pid_t> pids_;
  std::vector<int> pipes_;
};

// The name of this machine.
std::string this_host();

}  // namespace crema::tests
