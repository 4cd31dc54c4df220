// What `crema time` measures of a net.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "tools/measure/limits.h"
#include "tools/measure/percentiles.h"
#include "tools/measure/step_times.h"

namespace crema {

// A net with one batch size.
struct NetTimes {
  int64_t batch = 0;
  // The passes or training steps, in milliseconds. Each measurement is the mean of `group` of them.
  Timing whole;
  int group = 1;
  Timing forward, backward;  // parts of it, if they were measured apart
  Timing update;             // updating the weights, in a training step
  size_t memory_bytes = 0;   // 0: not measured
  std::deque<StepTimes::Step> steps;

  double samples_per_second() const { return 1e3 * static_cast<double>(batch) / whole.p50; }
};

struct TimeResult {
  std::string
      mode;  // "forward_backward", "forward_only", "forward" or "train_step": what `whole` is
  std::string net, model, phase, device, precision;
  int threads = 0, warmup = 0;
  Limits limits;
  std::vector<NetTimes> nets;  // one per batch size
};

// "p50 1.234 ms  p90 1.3 ms  p99 1.5 ms".
std::string percentiles_text(const Timing& timing);

// The work of a step, the share of the roofline that it reaches, and what limits it.
struct StepShare {
  double milliseconds = 0;  // the median
  double operations = 0, bytes = 0;
  double roofline = 0;  // 0: nothing to compute or to move
  bool arithmetic = false;
};
StepShare share_of(const StepTimes::Side& side, const Limits& limits);
// That of all steps of a net, forward or backward: medians and least times are added.
StepShare share_of_all(const NetTimes& times, StepTimes::Side StepTimes::Step::*side,
                       const Limits& limits);

// Prints a table of the steps, and for several batch sizes one of the whole net.
void print_times(const TimeResult& result);

// The schema is in tools/time.md.
std::string json_of(const TimeResult& result);

}  // namespace crema
