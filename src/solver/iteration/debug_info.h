// debug_info: mean absolute values of every blob, gradient and parameter while a net runs, in
// Caffe's log format.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "net/net.h"

namespace crema {

struct PlanNode;

class DebugInfo {
 public:
  // The net must have been created with keep_blobs, so that nothing is fused.
  DebugInfo(Net& net, std::function<void(const std::string& line)> write);
  ~DebugInfo();
  DebugInfo(const DebugInfo&) = delete;
  DebugInfo& operator=(const DebugInfo&) = delete;

  // While enabled, writes lines for each layer as it runs.
  void enable(bool on);
  bool enabled() const { return enabled_; }
  // After a backward pass: norms of all parameters together.
  void norms();
  // Called around an update: logs what it changed.
  void before_update();
  void after_update();

 private:
  void after_forward(const PlanNode& node);
  void before_backward(const PlanNode& node);
  void after_backward(const PlanNode& node);
  double mean(const Tensor& tensor) const;
  std::string shown(int parameter) const;

  Net& net_;
  std::function<void(const std::string&)> write_;
  bool enabled_ = false;
  std::map<int, std::vector<int>>
      splits_;  // value -> Split layers that read it, which the plan does not contain
  std::vector<std::vector<double>> before_;
};

}  // namespace crema
