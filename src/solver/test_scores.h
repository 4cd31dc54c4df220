// What a test phase says of a net: the means of its outputs over the batches, value by value, or
// one mean of all values where their number depends on the batch; or, of DetectionEvaluate with
// eval_type: "detection", the mean average precision over all of them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "net/net.h"
#include "solver/average_precision.h"
#include "solver/events.h"

namespace crema {

class SolverParameter;

// Error for an eval_type or ap_version that does not exist.
void check_evaluation(const SolverParameter& solver);

// Every element of every output.
std::vector<OutputValue> values_of(Net& net);

class TestScores {
 public:
  TestScores(const SolverParameter& solver, Net& net);

  // After the forward pass of a batch.
  void add();
  // Of all batches so far.
  std::vector<OutputValue> outputs() const;
  // Average precisions by class, in the order of the outputs.
  std::vector<event::ClassPrecision> classes() const;

 private:
  struct ClassDetections {
    int64_t objects = 0;
    std::vector<RankedDetection> detections;
  };
  struct Numbers {
    std::vector<double> sums;  // by place
    double total = 0;          // of all places
    int64_t count = 0;
    bool varies = false;  // not each batch has as many
    void add(const std::vector<float>& batch, bool first);
    std::vector<double> means(int batches) const;
  };
  // One output: either numbers or detections.
  struct Output {
    std::string blob;
    float loss_weight = 0;
    Numbers numbers;
    std::map<int, ClassDetections> classes;
  };

  bool holds_detections(const Shape& shape) const;

  Net& net_;
  bool detection_;
  std::string version_;
  std::vector<Output> outputs_;
  int batches_ = 0;
};

}  // namespace crema
