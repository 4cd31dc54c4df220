// How long each step of a net's plan takes.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "device/stopwatch.h"
#include "net/net.h"
#include "net/work.h"

namespace crema {

class StepTimes {
 public:
  explicit StepTimes(Net& net);
  ~StepTimes();
  StepTimes(const StepTimes&) = delete;
  StepTimes& operator=(const StepTimes&) = delete;

  struct Side {
    bool runs = false;
    double milliseconds = 0;  // of all passes so far
    Work work;                // of one
  };
  struct Step {
    std::string name;          // of the layers, or of what the planner added
    std::vector<int> members;  // positions of the layers; empty: the planner's own
    Side forward, backward;
  };
  struct Pass {
    double forward, backward;  // milliseconds
  };

  // One forward and one backward pass. A GPU has all of it queued before it starts, so that its
  // times hold no waiting for the host, as when it repeats a CUDA graph.
  Pass run(uint64_t pass);
  // Forgets the times.
  void clear();
  const std::deque<Step>& steps() const { return steps_; }  // in the order of forward

 private:
  void observe(const Net::StepInfo& step, bool begin);

  Net& net_;
  Stopwatch watch_;
  std::deque<Step> steps_;
  std::vector<Side*> order_;                   // of this pass
  std::map<const PlanNode*, size_t> indexes_;  // a plan may be made anew for each pass
};

}  // namespace crema
