// Stopwatch: how long stretches of work take on a context's device. A GPU's are timed by events in
// its stream, so that nobody waits before the end; a CPU's by the clock.
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

  // A moment: after all that has been queued so far.
  void mark();
  // Lets a GPU rest, so that what is queued next waits for it instead of it for what is queued:
  // then no time is measured in which it had nothing to do. Nothing on a CPU.
  void hold(double milliseconds);
  // Milliseconds between each mark and the next. Waits for the device and forgets the marks.
  std::vector<double> laps();

 private:
  struct Moments;
  Context& context_;
  std::unique_ptr<Moments> moments_;
};

}  // namespace crema
