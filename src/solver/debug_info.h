// debug_info: mean absolute values of every blob, gradient and parameter while a net runs, in
// Caffe's lines.
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
  // The net must have been made with keep_blobs: nothing is fused then.
  DebugInfo(Net& net, std::function<void(const std::string& line)> write);
  ~DebugInfo();
  DebugInfo(const DebugInfo&) = delete;
  DebugInfo& operator=(const DebugInfo&) = delete;

  // Lines come while this is on: for each layer as it runs.
  void enable(bool on);
  bool enabled() const { return enabled_; }
  // After a backward pass: norms of all parameters together.
  void norms();
  // Around an update: what it changed.
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
      splits_;  // value -> Split layers that read it: they are not in the plan
  std::vector<std::vector<double>> before_;
};

}  // namespace crema
