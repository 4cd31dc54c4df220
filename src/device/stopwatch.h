// Stopwatch: times stretches of work on a context's device. On a GPU it uses events in the stream,
// so that the host waits only at the end; on a CPU it uses the clock.
#pragma once

#include <memory>
#include <vector>

#include "device/context.h"

namespace crema {

class Stopwatch {
 public:
  explicit Stopwatch(Context& context);
  ~Stopwatch();
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  // Marks the point after all work queued so far.
  void mark();
  // Delays a GPU, so that work is queued ahead of it: the measured times then contain no idle gaps.
  // A no-op on a CPU.
  void hold(double milliseconds);
  // Milliseconds between successive marks. Waits for the device and clears the marks.
  std::vector<double> laps();

 private:
  struct Moments;
  Context& context_;
  std::unique_ptr<Moments> moments_;
};

}  // namespace crema
