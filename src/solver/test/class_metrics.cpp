#include "solver/test/class_metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "base/files.h"
#include "kernels/labels/confusion.h"
#include "solver/test/packed.h"

namespace crema {
namespace {

constexpr int64_t kTableClasses = 20;
constexpr size_t kMostScores = size_t{1} << 28;     // that auc and map keep: 1 GiB
constexpr int64_t kMostCounted = int64_t{1} << 30;  // by int32 counts
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// N of "topN"; 0: it is something else.
int64_t top_of(const std::string& name) {
  if (!starts_with(name, "top") || name.size() < 4 || name.size() > 8) return 0;
  const bool digits = std::all_of(name.begin() + 3, name.end(),
                                  [](char letter) { return letter >= '0' && letter <= '9'; });
  return digits ? std::stoll(name.substr(3)) : 0;
}

const LayerParameter* layer_that_compares(const NetParameter& net) {
  const LayerParameter* found = nullptr;
  for (const char* type : {"SoftmaxWithLoss", "Accuracy"}) {
    for (const LayerParameter& layer : net.layer()) {
      if (layer.type() == type && layer.bottom_size() >= 2) found = &layer;
    }
  }
  return found;
}

}  // namespace

std::vector<std::string> parse_class_metrics(const std::string& list) {
  const std::vector<std::string> known = {"confusion", "per_class", "top5", "auc",
                                          "map",       "f1",        "iou"};
  std::vector<std::string> asked;
  for (const auto& part : split(list, ',')) {
    const std::string name(trim(part));
    if (name.empty()) continue;
    require(top_of(name) > 0 || std::find(known.begin(), known.end(), name) != known.end(),
            "-metrics ", list, ": there is no \"", name, "\"", did_you_mean(name, known),
            "; expected ", join(known, ", "), ", or top with another number");
    asked.push_back(name);
  }
  return asked;
}

std::vector<int> ClassMetrics::unasked_values(const Graph& graph) {
  const LayerParameter* const layer = layer_that_compares(graph.net);
  if (!layer || layer->accuracy_param().min_is_better()) return {};
  for (const Node& node : graph.nodes) {
    if (node.message.name() != layer->name() || node.bottoms.size() < 2) continue;
    const Shape &scores = graph.values[node.bottoms[0]].shape,
                &labels = graph.values[node.bottoms[1]].shape;
    int axis = layer->type() == "Accuracy" ? layer->accuracy_param().axis()
                                           : layer->softmax_param().axis();
    if (axis < 0) axis += scores.axes();
    if (axis < 0 || axis >= scores.axes() || scores[axis] < 2 ||
        scores[axis] > kMostUnaskedClasses || labels.count() * scores[axis] != scores.count())
      return {};
    return {node.bottoms[0], node.bottoms[1]};
  }
  return {};
}

ClassMetrics::ClassMetrics(Net& net, std::vector<std::string> asked)
    : net_(net), asked_(std::move(asked)) {
  const NetParameter& text = net.graph().net;
  const LayerParameter* layer = layer_that_compares(text);
  require(layer, "-metrics: net \"", net.name(),
          "\" has no Accuracy or SoftmaxWithLoss layer in phase TEST, whose scores and labels "
          "could be compared");
  scores_ = layer->bottom(0);
  labels_ = layer->bottom(1);
  const bool accuracy = layer->type() == "Accuracy";
  axis_ = accuracy ? layer->accuracy_param().axis() : layer->softmax_param().axis();
  has_ignored_ = accuracy ? layer->accuracy_param().has_ignore_label()
                          : layer->loss_param().has_ignore_label();
  ignored_ = accuracy ? layer->accuracy_param().ignore_label() : layer->loss_param().ignore_label();
  for (const LayerParameter& other : text.layer()) {
    if (other.top_size() > 0 && other.top(0) == scores_) probabilities_ = other.type() == "Softmax";
  }
  const Shape shape = net.blob(scores_).shape();
  if (axis_ < 0) axis_ += shape.axes();
  require(axis_ < shape.axes() && shape[axis_] > 1, "-metrics: the scores \"", scores_,
          "\" are of shape ", shape.brief(), ", which has no axis of two or more classes");
  classes_ = shape[axis_];
  for (const std::string& name : asked_) {
    if (name == "confusion") continue;
    if (name == "per_class") {
      for (int64_t c = 0; c < classes_; ++c) names_.push_back(cat("accuracy_of_class_", c));
      continue;
    }
    if (top_of(name) > 0) tops_.push_back(top_of(name));
    names_.push_back(name == "f1" ? "macro_f1" : name == "iou" ? "mean_iou" : name);
  }
  clear();
}

ClassMetrics::ClassMetrics(Net& net) : ClassMetrics(net, {"confusion"}) { unasked_ = true; }

bool ClassMetrics::asks(const std::string& name) const {
  return std::find(asked_.begin(), asked_.end(), name) != asked_.end();
}

void ClassMetrics::clear() {
  confusion_.assign(static_cast<size_t>(classes_ * classes_), 0);
  if (in_counts_ > 0) zero(net_.context(), counts_);
  in_counts_ = 0;
  hits_.assign(tops_.size(), 0);
  rows_ = 0;
  kept_.clear();
  kept_labels_.clear();
}

// Whether single scores count, not the best ones alone.
bool ClassMetrics::reads_rows() const { return !tops_.empty() || asks("auc") || asks("map"); }

void ClassMetrics::add() {
  const Tensor scores = net_.blob(scores_), labels = net_.blob(labels_);
  const int64_t rows = scores.count() / std::max<int64_t>(scores.shape()[axis_], 1);
  if (labels.count() != rows && unasked_) return;
  require(labels.count() == rows, "-metrics: \"", labels_, "\" holds ", labels.count(),
          " labels, but \"", scores_, "\" of shape ", scores.shape().brief(), " has ", rows,
          " rows of scores");
  if (reads_rows() || !counts_confusion(scores, axis_, labels)) return add_rows(scores, labels);
  if (!counts_) counts_ = Tensor(net_.context(), {classes_ * classes_ + 1}, DType::i32);
  if (in_counts_ + rows > kMostCounted) finish();
  add_confusion(net_.context(), scores, axis_, labels,
                has_ignored_ ? std::optional<int>(static_cast<int>(ignored_)) : std::nullopt,
                counts_);
  in_counts_ += rows;
}

void ClassMetrics::finish() {
  if (in_counts_ == 0) return;
  std::vector<int32_t> counts(static_cast<size_t>(classes_ * classes_ + 1));
  copy_bytes(net_.context(), counts.data(), Device::cpu, counts_.raw(), counts_.device(),
             counts_.bytes());
  zero(net_.context(), counts_);
  in_counts_ = 0;
  for (size_t i = 0; i < confusion_.size(); ++i) {
    confusion_[i] += counts[i];
    rows_ += counts[i];
  }
  require(counts.back() == 0 || unasked_, "-metrics: ", counts.back(), " labels of \"", labels_,
          "\" are none of the ", classes_, " classes");
}

void ClassMetrics::add_rows(const Tensor& tensor, const Tensor& given) {
  const Shape& shape = tensor.shape();
  const std::vector<float> scores = to_floats(net_.context(), tensor);
  const std::vector<float> labels = to_floats(net_.context(), given);
  const int64_t outer = shape.count(0, axis_), inner = shape.count(axis_ + 1);
  std::vector<float> row(static_cast<size_t>(classes_));
  for (int64_t i = 0; i < outer * inner; ++i) {
    const auto label = static_cast<int64_t>(labels[i]);
    if (has_ignored_ && label == ignored_) continue;
    if (unasked_ && (label < 0 || label >= classes_)) continue;
    if (label < 0 || label >= classes_)
      fail("-metrics: label ", labels[i], " of \"", labels_, "\" is none of the ", classes_,
           " classes");
    for (int64_t c = 0; c < classes_; ++c)
      row[c] = scores[(i / inner * classes_ + c) * inner + i % inner];
    add_row(row, label);
  }
}

void ClassMetrics::check_room(size_t scores) const {
  require(kept_.size() + scores <= kMostScores, "-metrics auc, map: the test has more than ",
          kMostScores, " scores, which it would have to keep: leave them out");
}

void ClassMetrics::add_row(const std::vector<float>& row, int64_t label) {
  const auto best = std::max_element(row.begin(), row.end());
  ++confusion_[label * classes_ + (best - row.begin())];
  ++rows_;
  // As the Accuracy layer counts: a class with the same score is as good.
  const int64_t rank =
      std::count_if(row.begin(), row.end(), [&](float score) { return score >= row[label]; });
  for (size_t i = 0; i < tops_.size(); ++i) hits_[i] += rank <= tops_[i];
  if (!asks("auc") && !asks("map")) return;
  check_room(row.size());
  double sum = 0;
  for (const float score : row) sum += probabilities_ ? 0 : std::exp(double{score} - *best);
  for (const float score : row)
    kept_.push_back(probabilities_ ? score
                                   : static_cast<float>(std::exp(double{score} - *best) / sum));
  kept_labels_.push_back(static_cast<int32_t>(label));
}

std::string ClassMetrics::pack() const {
  Packer packer;
  packer.add(confusion_, hits_, rows_, kept_, kept_labels_);
  return packer.bytes();
}

void ClassMetrics::merge(const std::vector<std::string>& of_ranks) {
  clear();
  const auto add = [](std::vector<int64_t>& all, const std::vector<int64_t>& part) {
    for (size_t i = 0; i < all.size(); ++i) all[i] += part.at(i);
  };
  for (const std::string& counts : of_ranks) {
    Unpacker unpacker(counts);
    std::vector<int64_t> confusion, hits;
    std::vector<float> kept;
    std::vector<int32_t> labels;
    int64_t rows = 0;
    unpacker.get(confusion, hits, rows, kept, labels);
    unpacker.end();
    require(
        confusion.size() == confusion_.size() && hits.size() == hits_.size(),
        "-metrics: the ranks measure different things: give all of them the same net and flags");
    add(confusion_, confusion);
    add(hits_, hits);
    rows_ += rows;
    check_room(kept.size());
    kept_.insert(kept_.end(), kept.begin(), kept.end());
    kept_labels_.insert(kept_labels_.end(), labels.begin(), labels.end());
  }
}

int64_t ClassMetrics::labelled(int64_t label) const {
  const auto row = confusion_.begin() + label * classes_;
  return std::accumulate(row, row + classes_, int64_t{0});
}

int64_t ClassMetrics::predicted(int64_t label) const {
  int64_t sum = 0;
  for (int64_t other = 0; other < classes_; ++other) sum += confusion_[other * classes_ + label];
  return sum;
}

double ClassMetrics::recall(int64_t label) const {
  const auto all = static_cast<double>(labelled(label));
  return all == 0 ? kNone : static_cast<double>(confusion_[label * classes_ + label]) / all;
}

double ClassMetrics::f1(int64_t label) const {
  const auto all = static_cast<double>(labelled(label) + predicted(label));
  return all == 0 ? kNone : 2 * static_cast<double>(confusion_[label * classes_ + label]) / all;
}

ClassMetrics::ClassResult ClassMetrics::result_of(int64_t label) const {
  const auto all = static_cast<double>(predicted(label));
  const double right = static_cast<double>(confusion_[label * classes_ + label]);
  return {all == 0 ? kNone : right / all, recall(label), f1(label), labelled(label)};
}

double ClassMetrics::intersection_over_union(int64_t label) const {
  const auto both = static_cast<double>(confusion_[label * classes_ + label]);
  const double either = static_cast<double>(labelled(label) + predicted(label)) - both;
  return either == 0 ? kNone : both / either;
}

template <typename Each>
void ClassMetrics::by_score(int64_t label, const Each& each) const {
  std::vector<size_t> order(kept_labels_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto score = [&](size_t row) { return kept_[row * classes_ + label]; };
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return score(a) > score(b); });
  for (size_t from = 0, to = 0; from < order.size(); from = to) {
    double wrong = 0, right = 0;
    for (; to < order.size() && score(order[to]) == score(order[from]); ++to)
      ++(kept_labels_[order[to]] == label ? right : wrong);
    each(wrong, right);
  }
}

// The share of pairs of a row of the class and one of another in which the first has the larger
// score; equal scores count half.
double ClassMetrics::area_under_curve(int64_t label) const {
  double pairs = 0, positive = 0, negative = 0;
  by_score(label, [&](double wrong, double right) {
    pairs += wrong * (positive + right / 2);
    positive += right;
    negative += wrong;
  });
  return positive == 0 || negative == 0 ? kNone : pairs / (positive * negative);
}

// The sum over thresholds of precision times the recall that is gained there, not interpolated.
double ClassMetrics::average_precision(int64_t label) const {
  double area = 0, positive = 0, all = 0;
  by_score(label, [&](double wrong, double right) {
    positive += right;
    all += wrong + right;
    area += right * positive / all;
  });
  return positive == 0 ? kNone : area / positive;
}

double ClassMetrics::mean_of(double (ClassMetrics::*value)(int64_t) const) const {
  double sum = 0;
  int64_t count = 0;
  for (int64_t c = 0; c < classes_; ++c) {
    const double of_class = (this->*value)(c);
    if (std::isnan(of_class)) continue;
    sum += of_class;
    ++count;
  }
  return count == 0 ? kNone : sum / static_cast<double>(count);
}

std::vector<OutputValue> ClassMetrics::outputs() const {
  std::vector<double> values;
  size_t top = 0;
  for (const std::string& name : asked_) {
    if (name == "per_class") {
      for (int64_t c = 0; c < classes_; ++c) values.push_back(recall(c));
    } else if (name == "f1") {
      values.push_back(mean_of(&ClassMetrics::f1));
    } else if (name == "iou") {
      values.push_back(mean_of(&ClassMetrics::intersection_over_union));
    } else if (name == "auc") {
      values.push_back(classes_ == 2 ? area_under_curve(1)
                                     : mean_of(&ClassMetrics::area_under_curve));
    } else if (name == "map") {
      values.push_back(classes_ == 2 ? average_precision(1)
                                     : mean_of(&ClassMetrics::average_precision));
    } else if (name != "confusion") {
      values.push_back(static_cast<double>(hits_[top++]) / static_cast<double>(rows_));
    }
  }
  std::vector<OutputValue> outputs;
  for (size_t i = 0; i < values.size(); ++i)
    outputs.push_back({names_[i], static_cast<float>(values[i]), 0});
  return outputs;
}

std::optional<event::Confusion> ClassMetrics::confusion(const std::string& csv) const {
  if (!asks("confusion")) return {};
  event::Confusion confusion{.classes = classes_, .counts = confusion_, .asked = !unasked_};
  if (classes_ > kTableClasses && !csv.empty() && !unasked_) {
    std::string text;
    for (int64_t i = 0; i < classes_ * classes_; ++i)
      text += cat(confusion_[i], (i + 1) % classes_ == 0 ? "\n" : ",");
    write_file_atomically(csv, text);
    confusion.file = csv;
  }
  return confusion;
}

}  // namespace crema
