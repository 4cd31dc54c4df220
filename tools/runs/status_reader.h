// StatusReader: the status line of a run on a terminal: progress, speed, remaining time.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <string>

#include "solver/events/events.h"
#include "tools/console/program_log.h"

namespace crema {

class StatusReader : public EventReader {
 public:
  explicit StatusReader(ProgramLog& log) : log_(log) {}
  // images: samples in one iteration; records: samples in the training set. 0 values are not shown.
  void set_sizes(int64_t images, int64_t records) {
    images_ = images;
    records_ = records;
  }
  // Gives the bytes of memory in use, of the GPU or of this process on a CPU; 0 is not shown.
  void set_memory(std::function<size_t()> memory) { memory_ = std::move(memory); }
  void read(const Event& event) override;

  // The line for the number of iterations done, the speed, and the share of the time spent waiting
  // for data.
  std::string line(const event::Step& event, double iterations_per_second, double data_wait) const;

 private:
  using Clock = std::chrono::steady_clock;
  void step(const event::Step& event);

  ProgramLog& log_;
  int64_t images_ = 0, records_ = 0;
  std::function<size_t()> memory_;
  std::string loss_, rate_;
  // The steps of the last seconds, over which speed and waiting are measured.
  std::deque<std::pair<Clock::time_point, event::Step>> recent_;
  Clock::time_point drawn_{};
};

}  // namespace crema
