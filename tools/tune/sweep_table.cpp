#include "tools/tune/sweep_table.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/error.h"
#include "base/files.h"
#include "solver/test/test_watch.h"
#include "tools/pages/runs/run_settings.h"

namespace crema {

namespace {

constexpr size_t shown_outputs = 3;  // in the table; the CSV file has all

std::string shown_value(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.5g", value);
  return text;
}

std::pair<std::string, std::string> halves_of(const std::string& setting) {
  const size_t equals = setting.find('=');
  return {setting.substr(0, equals), setting.substr(equals + 1)};
}

void add_value(const std::string& name, double value, int64_t iteration, const SweepScore& score,
               std::vector<SweepValue>* values) {
  auto at = std::find_if(values->begin(), values->end(),
                         [&](const SweepValue& known) { return known.name == name; });
  if (at == values->end()) {
    const bool chosen = name == score.output && score.better != SweepScore::Better::by_name;
    const bool larger =
        chosen ? score.better == SweepScore::Better::larger : !named_like_a_loss(name);
    values->push_back({name, larger, value, value, iteration});
    return;
  }
  at->last = value;
  const bool better = at->larger_is_better ? value > at->best : value < at->best;
  if (better || std::isnan(at->best)) at->best = value, at->best_at = iteration;
}

// The outputs of all results in their order, the score first.
std::vector<std::string> outputs_of(const std::vector<SweepResult>& results) {
  std::vector<std::string> names;
  for (const SweepResult& result : results) {
    for (const SweepValue& value : result.values) {
      if (std::find(names.begin(), names.end(), value.name) == names.end())
        names.push_back(value.name);
    }
  }
  return names;
}

// The paths that are swept: of the first run, as all have the same unless axes were added later.
std::vector<std::string> paths_of(const std::vector<SweepResult>& results) {
  std::vector<std::string> paths;
  for (const SweepResult& result : results) {
    for (const std::string& setting : result.run.settings) {
      const std::string path = halves_of(setting).first;
      if (std::find(paths.begin(), paths.end(), path) == paths.end()) paths.push_back(path);
    }
  }
  return paths;
}

std::vector<std::string> settings_cells(const SweepRun& run,
                                        const std::vector<std::string>& paths) {
  std::vector<std::string> cells(paths.size());
  for (const std::string& setting : run.settings) {
    const auto [path, value] = halves_of(setting);
    cells[std::find(paths.begin(), paths.end(), path) - paths.begin()] = value;
  }
  return cells;
}

// Its settings have their own columns.
std::string number_of(const SweepRun& run) { return run.name.substr(0, run.name.find('-')); }

const SweepValue* find_value(const SweepResult& result, const std::string& name) {
  for (const SweepValue& value : result.values) {
    if (value.name == name) return &value;
  }
  return nullptr;
}

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

}  // namespace

std::vector<SweepValue> values_of(const Run& run, int net, const SweepScore& score) {
  std::vector<SweepValue> values, losses;
  for (const Metric& metric : run.metrics) {
    for (const auto& [name, value] : metric.values) {
      if (metric.kind == "test" && metric.net == net) {
        add_value(name, value, metric.iteration, score, &values);
      } else if (metric.kind == "train" && name == "loss") {
        add_value(name, value, metric.iteration, score, &losses);
      }
    }
  }
  if (values.empty()) return losses;
  const auto first = std::find_if(values.begin(), values.end(), [&](const SweepValue& value) {
    return value.name == score.output;
  });
  if (first != values.end()) std::rotate(values.begin(), first, first + 1);
  return values;
}

SweepResult result_of(const SweepRun& run, const std::string& folder, const SweepScore& score) {
  const std::string path = cat(folder, "/", run.name, "/metrics.jsonl");
  if (!file_exists(path)) return {run, 0, {}};
  const std::vector<Run> runs = read_runs(path);
  if (runs.empty()) return {run, 0, {}};
  return {run, runs.back().iterations(), values_of(runs.back(), 0, score)};
}

void sort_results(std::vector<SweepResult>* results) {
  const auto rank = [](const SweepResult& result) {
    if (result.values.empty() || std::isnan(result.values[0].last)) return INFINITY * 1.0;
    return result.values[0].larger_is_better ? -result.values[0].last : result.values[0].last;
  };
  std::stable_sort(results->begin(), results->end(),
                   [&](const SweepResult& a, const SweepResult& b) { return rank(a) < rank(b); });
}

std::vector<std::vector<std::string>> table_of(const std::vector<SweepResult>& results) {
  std::vector<std::string> outputs = outputs_of(results);
  if (outputs.size() > shown_outputs) outputs.resize(shown_outputs);
  const std::vector<std::string> paths = paths_of(results);
  std::vector<std::vector<std::string>> rows = {{"run"}};
  for (const std::string& path : paths) rows[0].push_back(setting_title(path));
  for (const std::string& output : outputs) {
    rows[0].push_back(output);
    rows[0].emplace_back("best");
    rows[0].emplace_back("at");
  }
  rows[0].emplace_back("iterations");
  rows[0].emplace_back("");
  for (const SweepResult& result : results) {
    std::vector<std::string> row = {number_of(result.run)};
    for (const std::string& cell : settings_cells(result.run, paths)) row.push_back(cell);
    for (const std::string& output : outputs) {
      const SweepValue* value = find_value(result, output);
      row.push_back(value ? shown_value(value->last) : "");
      row.push_back(value ? shown_value(value->best) : "");
      row.push_back(value ? cat(value->best_at) : "");
    }
    row.push_back(cat(result.iterations));
    row.emplace_back(result.run.state == SweepRun::State::done ? "" : name_of(result.run.state));
    rows.push_back(row);
  }
  return rows;
}

std::string csv_of(const std::vector<SweepResult>& results) {
  const std::vector<std::string> outputs = outputs_of(results), paths = paths_of(results);
  std::vector<std::vector<std::string>> rows = {{"run"}};
  rows[0].insert(rows[0].end(), paths.begin(), paths.end());
  for (const std::string& output : outputs) {
    for (const char* what : {"", " best", " best at"}) rows[0].push_back(output + what);
  }
  for (const char* name : {"iterations", "state", "message"}) rows[0].emplace_back(name);
  for (const SweepResult& result : results) {
    std::vector<std::string> row = {result.run.name};
    for (const std::string& cell : settings_cells(result.run, paths)) row.push_back(cell);
    for (const std::string& output : outputs) {
      const SweepValue* value = find_value(result, output);
      row.push_back(value ? cat(value->last) : "");
      row.push_back(value ? cat(value->best) : "");
      row.push_back(value ? cat(value->best_at) : "");
    }
    row.push_back(cat(result.iterations));
    row.emplace_back(name_of(result.run.state));
    row.push_back(result.run.message);
    rows.push_back(row);
  }
  std::string csv;
  for (std::vector<std::string>& row : rows) {
    for (std::string& cell : row) cell = csv_cell(cell);
    csv += join(row, ",") + "\n";
  }
  return csv;
}

}  // namespace crema
