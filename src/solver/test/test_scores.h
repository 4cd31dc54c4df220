// The results of a test phase: the means of a net's outputs over the batches, element by element,
// or one mean of all elements where their number depends on the batch. Of batches with different
// numbers of records each counts with its number, and for an element where it has that. For
// DetectionEvaluate with eval_type: "detection", the mean average precision over all batches.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "net/net.h"
#include "solver/events/events.h"
#include "solver/test/average_precision.h"

namespace crema {

class SolverParameter;

// Error for an unknown eval_type or ap_version.
void check_evaluation(const SolverParameter& solver);

// Every element of every output.
std::vector<OutputValue> values_of(Net& net);
// The same; of several ranks those of the whole batch, where an output is one value on all of them.
std::vector<OutputValue> values_of_ranks(Net& net);

class TestScores {
 public:
  TestScores(const SolverParameter& solver, Net& net);

  // Call after the forward pass of a batch. `records`: how many it has, where that differs.
  void add(int64_t records = 1);
  // What has been added. Those of several ranks, in the order of their batches, are merged into the
  // same on each, in place of its own.
  std::string pack() const;
  void merge(const std::vector<std::string>& of_ranks);

  // The results of all batches so far.
  std::vector<OutputValue> outputs() const;
  // Average precisions by class, in the order of the outputs.
  std::vector<event::ClassPrecision> classes() const;

 private:
  struct ClassDetections {
    int64_t objects = 0;
    std::vector<RankedDetection> detections;
  };
  struct Batch {
    int64_t records = 0, elements = 0;
    bool operator==(const Batch&) const = default;
  };
  struct Means {
    std::vector<double> sums;      // by position
    std::vector<int64_t> records;  // of the batches that have it, likewise
    std::vector<Batch> batches;    // that differ, in the order in which they first came
    double total = 0;              // over all positions
    int64_t count = 0;
    void add(const std::vector<float>& batch, int64_t in_batch);
    void append(const Means& later);
    void add_batch(const Batch& batch);
    // The number of elements differs between batches, and not with that of the records.
    bool varies() const;
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
