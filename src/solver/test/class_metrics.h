// ClassMetrics: what tests say of a classifier besides the outputs of its net: the confusion of its
// classes, and the numbers that follow from it. Takes the scores and labels that the net's Accuracy
// or SoftmaxWithLoss layer compares, so the net need not be edited.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "net/net.h"
#include "solver/events/events.h"

namespace crema {

// Classifiers of up to so many classes have their confusion counted without being asked.
constexpr int64_t kMostUnaskedClasses = 100;

// "confusion,top5" -> its parts. Error for one that does not exist.
std::vector<std::string> parse_class_metrics(const std::string& list);

class ClassMetrics {
 public:
  // The scores and labels of a net whose confusion is counted without being asked: they must be kept
  // for it. None where no layer compares them, or there are more than kMostUnaskedClasses.
  static std::vector<int> unasked_values(const Graph& graph);

  // `asked`: of confusion, per_class, topN, auc, map, f1, iou. The net must keep its blobs. Error when it
  // compares no scores with labels.
  ClassMetrics(Net& net, std::vector<std::string> asked);
  // The confusion, for a net that has unasked_values() and keeps them. Its labels that are no class
  // are left out.
  explicit ClassMetrics(Net& net);

  // Call after the forward pass of a batch. Error when a label is no class.
  void add();
  // Call after the last batch, before the results are read. On a GPU, labels are checked here.
  void finish();
  // A new test begins.
  void clear();
  // What has been added since then. That of several ranks, in the order of their batches, is merged
  // into the same on each, in place of its own. Error when auc and map would keep too much.
  std::string pack() const;
  void merge(const std::vector<std::string>& of_ranks);

  // The names of outputs(), in the same order.
  const std::vector<std::string>& names() const { return names_; }
  // A class that occurs nowhere is nan by itself and counts in no mean.
  std::vector<OutputValue> outputs() const;
  int64_t classes() const { return classes_; }
  // Precision and recall are nan where nothing was predicted, or labelled, so.
  struct ClassResult {
    double precision = 0, recall = 0, f1 = 0;
    int64_t records = 0;
  };
  ClassResult result_of(int64_t label) const;

  // If confusions are counted, without iteration and net. More than 20 classes that were asked for
  // are also written to the file `csv`, unless it is "".
  std::optional<event::Confusion> confusion(const std::string& csv) const;

 private:
  bool asks(const std::string& name) const;
  bool reads_rows() const;
  void check_room(size_t scores) const;
  void add_rows(const Tensor& scores, const Tensor& labels);
  void add_row(const std::vector<float>& scores, int64_t label);
  double mean_of(double (ClassMetrics::*value)(int64_t) const) const;
  double recall(int64_t label) const;
  double f1(int64_t label) const;
  double intersection_over_union(int64_t label) const;
  double area_under_curve(int64_t label) const;
  double average_precision(int64_t label) const;
  // Calls each(wrong, right) for the rows whose score for the class is equal, from the largest score
  // on: how many of them are of other classes, and of this one.
  template <typename Each>
  void by_score(int64_t label, const Each& each) const;
  int64_t labelled(int64_t label) const;
  int64_t predicted(int64_t label) const;

  Net& net_;
  std::vector<std::string> asked_, names_;
  bool unasked_ = false;
  std::string scores_, labels_;  // blobs
  int axis_ = 1;
  bool has_ignored_ = false, probabilities_ = false;
  int64_t ignored_ = 0;
  int64_t classes_ = 0;
  Tensor counts_;                     // of add_confusion(); empty before the first batch
  int64_t in_counts_ = 0;             // labels in them
  std::vector<int64_t> confusion_;    // classes x classes
  std::vector<int64_t> tops_, hits_;  // N of each topN, and how often the label was among them
  int64_t rows_ = 0;
  std::vector<float> kept_;  // for auc and map: probabilities of each row, and its label
  std::vector<int32_t> kept_labels_;
};

}  // namespace crema
