#include "tools/tune/compare_runs.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/visible.h"
#include "tools/console/table.h"
#include "tools/tune/sweep_table.h"

namespace crema {

namespace {

Run run_at(const std::string& path) {
  const std::string file = folder_exists(path) ? path + "/metrics.jsonl" : path;
  std::vector<Run> runs = read_runs(file);
  require(!runs.empty(), file,
          ": is empty; `crema train` writes metrics.jsonl next to its snapshots");
  return runs.back();
}

std::string number_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.5g", shown(value));
  return text;
}

const SweepValue* find_in(const std::vector<SweepValue>& values, const std::string& name) {
  for (const SweepValue& value : values) {
    if (value.name == name) return &value;
  }
  return nullptr;
}

// A row for each name that either has.
void add_rows(const std::string& prefix, const std::vector<SweepValue>& a,
              const std::vector<SweepValue>& b, std::vector<std::vector<std::string>>* rows) {
  std::vector<std::string> names;
  for (const auto* values : {&a, &b}) {
    for (const SweepValue& value : *values) {
      if (std::find(names.begin(), names.end(), value.name) == names.end())
        names.push_back(value.name);
    }
  }
  for (const std::string& name : names) {
    const SweepValue *of_a = find_in(a, name), *of_b = find_in(b, name);
    std::vector<std::string> row = {prefix + name};
    for (const SweepValue* value : {of_a, of_b}) {
      row.push_back(value ? number_text(value->last) : "");
      row.push_back(value ? number_text(value->best) : "");
      row.push_back(value ? cat(value->best_at) : "");
    }
    row.push_back(of_a && of_b ? number_text(of_b->best - of_a->best) : "");
    rows->push_back(row);
  }
}

// The loss of the training alone, whatever is tested.
std::vector<SweepValue> losses_of(Run run) {
  std::erase_if(run.metrics, [](const Metric& metric) { return metric.kind == "test"; });
  return values_of(run, 0);
}

double seconds_of(const Run& run) {
  double seconds = 0, before = 0;  // time begins anew with each start
  for (const Metric& metric : run.metrics) {
    if (metric.kind == "start") before = seconds;
    seconds = std::max(seconds, before + metric.time);
  }
  return seconds;
}

std::set<int> tested_nets(const Run& run) {
  std::set<int> nets;
  for (const Metric& metric : run.metrics) {
    if (metric.kind == "test") nets.insert(metric.net);
  }
  return nets;
}

// "net" of the same text in both, or not; nothing where an older version did not write it.
void print_identity(const Run& a, const Run& b) {
  const std::string net_a = a.identity("net_text"), net_b = b.identity("net_text");
  const std::string all_a = a.identity("recipe"), all_b = b.identity("recipe");
  if (net_a.empty() || net_b.empty()) return;
  const bool nets = net_a == net_b;
  std::cout << (nets ? "Both train the same net" : "They train different nets")
            << (all_a == all_b ? " with the same solver.\n"
                : nets         ? " with different solvers.\n"
                               : ".\n");
}

}  // namespace

void compare_runs(const std::string& path_a, const std::string& path_b) {
  const Run a = run_at(path_a), b = run_at(path_b);
  std::cout << "A is " << visible(path_a) << " (run " << visible(a.id) << ", " << a.iterations()
            << " iterations, " << number_text(seconds_of(a)) << " s), B is " << visible(path_b)
            << " (run " << visible(b.id) << ", " << b.iterations() << " iterations, "
            << number_text(seconds_of(b)) << " s).\n";
  print_identity(a, b);
  std::vector<std::vector<std::string>> rows = {
      {"", "A", "best", "at", "B", "best", "at", "B's best - A's"}};
  std::set<int> nets = tested_nets(a);
  nets.merge(tested_nets(b));
  for (const int net : nets) {
    const auto tests_of = [net](const Run& run) {
      return tested_nets(run).count(net) ? values_of(run, net) : std::vector<SweepValue>();
    };
    add_rows(nets.size() > 1 ? cat("test #", net, " ") : "test ", tests_of(a), tests_of(b), &rows);
  }
  add_rows("training ", losses_of(a), losses_of(b), &rows);
  print_table(rows, 1);
}

}  // namespace crema
