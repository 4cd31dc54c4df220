// What makes a run wait for its data, and which setting would help.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace crema {

// Per-sample timings of Dataset::load(), in seconds, and the image's size as stored.
struct SampleTimes {
  double read = 0, decode = 0, change = 0;
  int64_t height = 0, width = 0;
};

// Measures them if a Sample requests it, and otherwise costs nothing.
class Laps {
 public:
  explicit Laps(SampleTimes* times) : times_(times) {
    if (times_) last_ = Clock::now();
  }
  void see_image(int64_t height, int64_t width) {
    if (times_) times_->height = height, times_->width = width;
  }
  // Since the last call, or since the beginning.
  void end(double SampleTimes::*part) {
    if (!times_) return;
    const Clock::time_point now = Clock::now();
    times_->*part += std::chrono::duration<double>(now - last_).count();
    last_ = now;
  }

 private:
  using Clock = std::chrono::steady_clock;
  SampleTimes* times_;
  Clock::time_point last_;
};

// A source's description of its work.
struct WaitingFacts {
  SampleTimes times;   // per sample, on one thread: means
  double seconds = 0;  // of a sample, all parts and the rest: cropping, mean, scale
  int threads = 1, cores = 1;
  int64_t records = 0;
  int64_t channels = 0, height = 0, width = 0;  // size of the data that the net reads
  bool files = false;                           // from a list, not records of a database
  bool decodes = false;                         // image files, to bytes
  bool resizes = false;                         // to a size that the net's file gives
  bool scaled = false;                          // scaled_decoding is on
  bool has_cache = false, cached = false;       // the field `cache`, and whether it is set
  std::string dearest_change;                   // from augment; "": none
  size_t free_memory = 0;
};

// The one thing that would help most: a row of the table in waiting.cpp.
std::string waiting_hint(const WaitingFacts& facts);

}  // namespace crema
