// The parts of one rank's Control: its thread, the only one that touches the sockets, and the data
// shared with calls from other threads. Included by control.cpp, control_connections.cpp and
// control_judgement.cpp.
#pragma once

#include <poll.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "comm/control.h"
#include "comm/control_rendezvous.h"

namespace crema {

class Control::Connections {
 public:
  explicit Connections(const ControlOptions& options);
  ~Connections();

  // The calls of Control.
  std::vector<std::string> gather(std::string_view text);
  void at_iteration(int64_t iteration) {
    iteration_.store(iteration, std::memory_order_relaxed);
    step();
  }
  void set_waiting(bool waiting) {
    waiting_.store(waiting, std::memory_order_relaxed);
    step();
  }
  void change_pauses(int by);
  void check();
  bool lost() const { return lost_.load(std::memory_order_acquire); }
  void when_lost(std::function<void()> work);
  void fail();
  // Tells the others that this rank is done, or has failed, and ends the thread.
  void end(bool failed);

 private:
  // Another rank, as this one knows it.
  struct Peer {
    std::unique_ptr<Connection> connection;
    bool readable = false;  // something has come
    Moment heard;           // when anything has come
    int64_t iteration = -1;
    int64_t steps = 0;  // its progress, and when it last changed
    Moment stepped;
    bool paused = false;
    bool waiting = false;  // for the others
    bool done = false;     // no more data will come from it
    bool lost = false;
  };
  struct Loss {
    std::string what;
    bool told = false;
    Moment tell_at;  // callers are told then
  };
  // Rank 0: the gather that the ranks are in.
  struct Collection {
    int64_t number = 1;
    std::vector<std::optional<std::string>> texts;
    int count = 0;
    Moment since;  // the first has come
  };

  // --- the thread ---
  void run();
  void wait();
  void receive(Moment now);
  void handle(int rank, Frame&& frame);
  void take_requests(Moment now);
  void collect(int rank, int64_t number, std::string&& text, Moment now);
  void answer();
  void judge(Moment now);
  void judge_silence(Moment now);
  void judge_gather(Moment now);
  void judge_steps(Moment now);
  void note_steps(int rank, int64_t steps, bool waiting, Moment now);
  void send_beats(Moment now);
  void call_back();
  void serve_standby();
  void ask();
  bool closed(Moment now);

  // Rank 0's verdict, of which it tells all; another rank's about rank 0. `what` follows the names
  // of the ranks. told: by the lost rank itself.
  void lose(const std::vector<int>& ranks, const std::string& what, bool told = false);
  void note_loss(const std::string& what, bool told, double delay);
  std::string iteration_of(int rank) const;
  void send_all(const Bytes& frame);
  void flush();
  void wake();  // the thread
  void step() { steps_.fetch_add(1, std::memory_order_relaxed); }
  [[noreturn]] void throw_loss(std::unique_lock<std::mutex>& lock);

  const int rank_, ranks_;
  const double timeout_;
  const ControlClock::duration interval_;  // between beats
  std::vector<Peer> peers_;                // by rank
  std::vector<std::string> hosts_;
  std::unique_ptr<Standby> standby_;
  std::string standby_address_;
  std::string token_;
  bool asks_standby_ = false, tells_ = false;  // rank 0 is lost: who tells the user; this rank does
  std::vector<Moment> excused_;  // until when each rank had a reason to keep the others waiting
  Collection collection_;
  Moment last_round_, next_beat_, close_at_;
  bool sent_pause_ = false, closing_ = false;
  bool waits_ = false;  // this rank has sent its text and has no answer yet

  // Shared with the callers.
  std::atomic<int64_t> iteration_{-1}, steps_{0};
  std::atomic<bool> waiting_{false};
  std::atomic<int> pauses_{0};
  std::atomic<bool> lost_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t number_ = 0;  // of this rank's last gather
  std::optional<std::string> offered_;
  std::optional<std::vector<std::string>> answer_;
  std::optional<Loss> loss_;
  std::vector<std::function<void()>> callbacks_;
  enum class End { none, done, failed };
  End end_ = End::none;

  Socket wake_;  // an eventfd
  std::thread thread_;
};

}  // namespace crema
