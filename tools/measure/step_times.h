// StepTimes: measures how long each step of a net's plan takes.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "device/stopwatch.h"
#include "net/net.h"
#include "net/plan/work.h"

namespace crema {

class StepTimes {
 public:
  // backward: whether run() goes backward, too.
  explicit StepTimes(Net& net, bool backward = true);
  ~StepTimes();
  StepTimes(const StepTimes&) = delete;
  StepTimes& operator=(const StepTimes&) = delete;

  struct Side {
    bool runs = false;
    std::vector<double> milliseconds;  // of each pass so far
    Work work;                         // per pass
    double sum() const;                // all its milliseconds together
  };
  struct Step {
    std::string name;                 // names of its layers, or what the planner inserted
    std::vector<int> members;         // indices of the layers; empty: inserted by the planner
    std::vector<std::string> layers;  // their names
    Side forward, backward;
  };
  struct Pass {
    double forward, backward;  // milliseconds
  };

  // One forward and one backward pass. On a GPU everything is queued before it starts, so that the
  // times include no waiting for the host, as when a CUDA graph is replayed.
  Pass run(uint64_t pass);
  // Discards the times.
  void clear();
  const std::deque<Step>& steps() const { return steps_; }  // in the order of forward

 private:
  void observe(const Net::StepInfo& step, bool begin);

  Net& net_;
  const bool backward_;
  Stopwatch watch_;
  std::deque<Step> steps_;
  std::vector<Side*> order_;                   // of this pass
  std::map<const PlanNode*, size_t> indexes_;  // a plan may be rebuilt for each pass
};

}  // namespace crema
