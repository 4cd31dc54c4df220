// Progress: how fast a run is between two displays, and whether it keeps waiting for its data.
#pragma once

#include <chrono>
#include <cstdint>

namespace crema {

// Notices a run that keeps waiting for its data.
class Starvation {
 public:
  // Called with each display: the share of its time, 0 to 1, that went into waiting, and how many
  // iterations it covers. True once, when that has been much for a while.
  bool begins(double share, int64_t iterations);

 private:
  bool started_ = false, told_ = false;
  int displays_ = 0;        // one after the other with much waiting
  int64_t iterations_ = 0;  // that they cover
};

class Progress {
 public:
  // Since the display before, or the start.
  struct Span {
    double seconds = 0, iterations_per_second = 0;
    double waited = 0;     // share of the time, 0 to 1, that went into waiting for data
    bool starves = false;  // true once, when that has been much for a while
  };
  // `waited`: seconds of waiting for data so far.
  void start(int64_t iteration, double waited);
  Span display(int64_t iteration, double waited);
  // The time since the last display does not count: it was not spent on training.
  void leave_out() { at_ = Clock::now(); }

 private:
  using Clock = std::chrono::steady_clock;
  int64_t iteration_ = 0;
  Clock::time_point at_;
  double waited_ = 0;
  Starvation starvation_;
};

}  // namespace crema
