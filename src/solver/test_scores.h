// The results of a test phase: the means of a net's outputs over the batches, element by element,
// or one mean of all elements where their number depends on the batch. Of batches with different
// numbers of records each counts with its number, and for an element where it has that. For
// DetectionEvaluate with eval_type: "detection", the mean average precision over all batches.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "net/net.h"
#include "solver/average_precision.h"
#include "solver/events.h"

namespace crema {

class SolverParameter;

// Error for an unknown eval_type or ap_version.
void check_evaluation(const SolverParameter& solver);

// Every element of every output.
std::vector<OutputValue> values_of(Net& net);

class TestScores {
 public:
  TestScores(const SolverParameter& solver, Net& net);

  // Call after the forward pass of a batch. `records`: how many it has, where that differs.
  void add(int64_t records = 1);
  // The results of all batches so far.
  std::vector<OutputValue> outputs() const;
  // Average precisions by class, in the order of the outputs.
  std::vector<event::ClassPrecision> classes() const;

 private:
  struct ClassDetections {
    int64_t objects = 0;
    std::vector<RankedDetection> detections;
  };
  struct Means {
    std::vector<double> sums;      // by position
    std::vector<int64_t> records;  // of the batches that have it, likewise
    int64_t first_records = 0;     // of the first batch
    size_t first_size = 0;         // and its number of elements
    double total = 0;              // over all positions
    int64_t count = 0;
    bool varies = false;  // the number differs between batches, and not with that of the records
    void add(const std::vector<float>& batch, int64_t in_batch);
    std::vector<double> means() const;
  };
  // One output: either values or detections.
  struct Output {
    std::string blob;
    float loss_weight = 0;
    Means numbers;
    std::map<int, ClassDetections> classes;
  };

  bool holds_detections(const Shape& shape) const;

  Net& net_;
  bool detection_;
  std::string version_;
  std::vector<Output> outputs_;
};

}  // namespace crema
