#include "tools/pages/runs/run_curves.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/strings.h"
#include "tools/pages/runs/run_state.h"

namespace crema {

namespace {

enum class Group { losses, tests, classes, rate, speed, waiting };

// A recorded value and its line for each run.
struct Quantity {
  Group group = Group::losses;
  bool training = true;
  std::string name;             // in a chart with others
  std::map<size_t, Series> of;  // by the number of the run
};

constexpr const char* kOfClass = "accuracy_of_class_";

class Quantities {
 public:
  explicit Quantities(const std::vector<PageRun>& runs) {
    for (const PageRun& run : runs) {
      for (const Metric& metric : run.run->metrics) nets_ = std::max(nets_, metric.net + 1);
    }
    for (size_t i = 0; i < runs.size(); ++i) {
      begun_ = before_ = epoch_ = 0;
      for (const Metric& metric : runs[i].run->metrics) {
        // Each start counts time from zero.
        if (metric.time < before_) begun_ += before_;
        before_ = metric.time;
        if (metric.kind == "start") epoch_ = value_of(metric, "epoch");
        if (metric.kind != "train" && metric.kind != "test") continue;
        for (const auto& [name, value] : metric.values) add(i, metric, name, value);
      }
    }
  }

  // In the order in which charts are shown; the training's loss is the first.
  std::vector<Quantity> sorted() {
    std::stable_sort(all_.begin(), all_.end(), [](const Quantity& a, const Quantity& b) {
      return std::pair(a.group, !a.training) < std::pair(b.group, !b.training);
    });
    return std::move(all_);
  }

 private:
  void add(size_t run, const Metric& metric, const std::string& name, double value) {
    const bool training = metric.kind == "train";
    const std::string key = cat(metric.kind, " ", training ? 0 : metric.net, " ", name);
    const auto [at, added] = index_.try_emplace(key, all_.size());
    if (added) all_.push_back(quantity(name, training, metric.net));
    Series& series = all_[at->second].of[run];
    const bool in_percent = all_[at->second].group == Group::waiting;
    series.points.emplace_back(static_cast<double>(metric.iteration),
                               in_percent ? 100 * value : value);
    series.seconds.push_back(begun_ + metric.time);
    series.epoch = epoch_;
  }

  static double value_of(const Metric& metric, const std::string& wanted) {
    for (const auto& [name, value] : metric.values) {
      if (name == wanted) return value;
    }
    return 0;
  }

  Quantity quantity(const std::string& name, bool training, int net) const {
    if (training && name == "lr") return {Group::rate, true, "learning rate", {}};
    if (training && name == "data_wait") return {Group::waiting, true, "waiting for data", {}};
    if (training && name == "iterations_per_second")
      return {Group::speed, true, "iterations per second", {}};
    const std::string phase = training    ? "training: "
                              : nets_ > 1 ? cat("test #", net, ": ")
                                          : "test: ";
    if (is_loss(name)) return {Group::losses, training, phase + name, {}};
    const Group group = starts_with(name, kOfClass) ? Group::classes : Group::tests;
    return {group, training, training || nets_ > 1 ? phase + name : name, {}};
  }

  int nets_ = 1;
  double begun_ = 0, before_ = 0, epoch_ = 0;  // of the run that is read
  std::map<std::string, size_t> index_;
  std::vector<Quantity> all_;
};

std::string title_of(Group group) {
  switch (group) {
    case Group::losses:
      return "Loss";
    case Group::tests:
      return "Test results";
    case Group::classes:
      return "Accuracy of each class";
    case Group::rate:
      return "Learning rate";
    case Group::speed:
      return "Iterations per second";
    case Group::waiting:
      return "Waiting for data";
  }
  return "";
}

std::string note_of(Group group) {
  if (group == Group::speed) return "Since the previous display, including tests.";
  if (group == Group::waiting) return "Percent of the time that the run waited for data.";
  return "";
}

bool is_share(const Quantity& quantity) {
  for (const auto& entry : quantity.of) {
    for (const auto& [x, y] : entry.second.points) {
      if (std::isfinite(y) && (y < 0 || y > 1)) return false;
    }
  }
  return true;
}

std::string capital(std::string name) {
  if (!name.empty() && name[0] >= 'a' && name[0] <= 'z') name[0] += 'A' - 'a';
  return name;
}

// Without their common prefix: the name of the class, or its number.
std::string class_of(const std::string& output, const std::vector<std::string>& classes) {
  const size_t at = output.find(kOfClass);
  const std::string number = output.substr(at + std::string_view(kOfClass).size());
  const size_t label = std::strtoull(number.c_str(), nullptr, 10);
  return output.substr(0, at) + (label < classes.size() ? classes[label] : "class " + number);
}

std::vector<RunChart> charts_of_one(const std::vector<Quantity>& quantities, const PageRun& run) {
  std::vector<RunChart> charts;
  std::map<Group, size_t> shared;
  for (const Quantity& quantity : quantities) {
    Series series = quantity.of.begin()->second;
    series.name =
        quantity.group == Group::classes ? class_of(quantity.name, run.classes) : quantity.name;
    if (quantity.group == Group::tests && !is_share(quantity)) {
      charts.push_back({capital(quantity.name), "", {series}});
      continue;
    }
    const auto [at, added] = shared.try_emplace(quantity.group, charts.size());
    if (added) charts.push_back({title_of(quantity.group), note_of(quantity.group), {}});
    charts[at->second].series.push_back(series);
  }
  for (RunChart& chart : charts) {
    // A single line has no legend.
    const std::string& name = chart.series[0].name;
    if (chart.series.size() == 1 && chart.note.empty() && edit_distance(name, chart.title) > 1)
      chart.note = name;
  }
  return charts;
}

std::vector<RunChart> charts_of_several(const std::vector<Quantity>& quantities,
                                        const std::vector<PageRun>& runs) {
  std::vector<RunChart> charts;
  for (const Quantity& quantity : quantities) {
    if (quantity.group == Group::classes) continue;  // in the page of each run
    const bool alone = quantity.group != Group::losses && quantity.group != Group::tests;
    RunChart chart{
        alone ? title_of(quantity.group) : capital(quantity.name), note_of(quantity.group), {}};
    for (const auto& [run, series] : quantity.of) {
      chart.series.push_back(series);
      chart.series.back().name =
          runs[run].name + (has_diverged(*runs[run].run) ? " (diverged)" : "");
      chart.series.back().colour = static_cast<int>(run);
    }
    charts.push_back(chart);
  }
  return charts;
}

}  // namespace

bool is_accuracy(const std::string& name) {
  const bool top = starts_with(name, "top") && name.size() > 3 && name[3] >= '0' && name[3] <= '9';
  return top || name.find("acc") != std::string::npos;
}
bool is_loss(const std::string& name) { return name.find("loss") != std::string::npos; }

bool is_better(const std::string& name, double value, double than) {
  if (!std::isfinite(value)) return false;
  return !std::isfinite(than) || (is_loss(name) ? value < than : value > than);
}

std::vector<RunChart> charts_of(const std::vector<PageRun>& runs) {
  const std::vector<Quantity> quantities = Quantities(runs).sorted();
  return runs.size() == 1 ? charts_of_one(quantities, runs[0])
                          : charts_of_several(quantities, runs);
}

double end_of(const std::vector<PageRun>& runs) {
  int64_t end = 0;
  for (const PageRun& run : runs) end = std::max(end, run.run->iterations());
  return static_cast<double>(end);
}

Series loss_of(const Run& run) {
  Series series;
  for (const Metric& metric : run.metrics) {
    if (metric.kind != "train") continue;
    for (const auto& [name, value] : metric.values) {
      if (name == "loss") series.points.emplace_back(static_cast<double>(metric.iteration), value);
    }
  }
  return series;
}

}  // namespace crema
