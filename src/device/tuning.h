// Tuning: which of several candidates for one computation is fastest on this GPU. Answers are kept
// in a file in the user's cache folder ($XDG_CACHE_HOME/crema, else ~/.cache/crema), one per GPU
// model and cuDNN version, or build without it. Only files of a CUDA build include this header.
#pragma once

#include <cuda_runtime.h>

#include <chrono>
#include <functional>
#include <ios>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "device/device.h"

namespace crema {

// A candidate replaces an earlier one only if it takes less than this fraction of its time: between
// near-equals the order of the heuristics that named them decides, so that noise does not.
constexpr double kClearlyFaster = 0.98;
// A candidate whose first run takes more than this many times the best time so far, and as many
// milliseconds more as a launch may take, is not run again.
constexpr double kHopeless = 1.3, kLaunchMilliseconds = 0.01;
inline bool is_hopeless(double milliseconds, double best) {
  return milliseconds > kHopeless * best + kLaunchMilliseconds;
}

class Buffer;
class Context;

class Tuning {
 public:
  Tuning();
  ~Tuning();
  Tuning(const Tuning&) = delete;
  Tuning& operator=(const Tuning&) = delete;

  // Reads the file. `card`: what the answers depend on in addition to their keys. An unreadable or
  // damaged file counts as empty.
  void open(const std::string& card);
  TuneMode mode = TuneMode::quick;
  // How many candidates to time: 1, 6 or all known ones.
  int candidates() const;

  std::optional<std::string> find(const std::string& key);
  // Also appends the answer to the file; if that fails, this run continues without. Returns and
  // from then on keeps what another process has answered since the file was read: so runs that
  // start together with an empty file compute the same bits.
  std::optional<std::string> remember(const std::string& key, const std::string& answer);

  // Memory to time candidates in, filled with small numbers, kept until release(). Null if that
  // much is not free.
  void* scratch(Context& context, size_t bytes);
  void release();
  // Milliseconds that the work queued by `work` takes.
  double time(Context& context, const std::function<void()>& work);
  // The same for work that runs without gaps: it is queued several times before it starts. best:
  // the shortest time so far; hopeless work runs twice only.
  double time_repeated(Context& context, const std::function<void()>& work, double best = 1e30);

  // Wall time since the last report.
  struct Spent {
    int answers = 0;      // new ones
    double seconds = 0;   // in making and timing candidates
    double building = 0;  // of these, in making plans of cuDNN
  };
  Spent spent;
  // For the log, which also clears `spent`: "" if less than a second was spent.
  std::string report();
  // Adds the time of its life to spent.seconds.
  class Spending {
   public:
    explicit Spending(Tuning& tuning);
    ~Spending();
    Spending(const Spending&) = delete;
    Spending& operator=(const Spending&) = delete;

   private:
    Tuning& tuning_;
    bool outermost_;
    std::chrono::steady_clock::time_point begin_;
  };

 private:
  void read_on();
  double time_queued(Context& context, const std::function<void()>& work, int times);

  std::string path_;
  std::streamoff read_ = 0;                                       // bytes of the file read so far
  std::unordered_map<std::string, std::string> answers_, given_;  // given_: returned by find()
  std::unique_ptr<Buffer> scratch_;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
  bool spending_ = false;
};

}  // namespace crema
