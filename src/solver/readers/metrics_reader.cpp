#include "solver/readers/metrics_reader.h"

#include <algorithm>
#include <filesystem>
#include <random>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "solver/events/run_identity.h"
#include "solver/readers/named_values.h"

namespace crema {

namespace {

// What confusions may take in any case, and the growth from one iteration to that of the next that
// is written.
constexpr size_t kConfusionBytes = size_t{32} << 10;
constexpr double kConfusionGrowth = 1.5;

// The name of the run in this file that wrote the snapshot being resumed; "" where there is none.
std::string run_to_go_on(const std::string& path, const event::Start& start) {
  if (start.run.resumed_from.empty()) return "";
  std::string id;
  for (const Run& run : read_runs(path)) {
    const Metric* snapshot = run.with_weights(start.run.weights);
    if (snapshot && snapshot->iteration == start.iteration) id = run.id;
  }
  return id;
}

std::string random_name() {
  std::random_device random;
  return hex_of(random()).substr(8);
}

// The name of the last run in this file.
std::string last_run(const std::string& path) {
  const std::vector<Run> runs = read_runs(path);
  return runs.empty() ? "" : runs.back().id;
}

}  // namespace

MetricsReader::MetricsReader(Log& log, const OneRun& run)
    : MetricsReader(log, run.folder + "/metrics.jsonl") {
  table_.emplace(log, run.folder + "/metrics.csv");
}

void MetricsReader::begin(const event::Start& start) {
  start_ = std::chrono::steady_clock::now();
  try {
    if (file_exists(path_)) {
      drop_cut_line(path_);
      run_ = table_ ? last_run(path_) : run_to_go_on(path_, start);
    }
  } catch (const std::exception& error) {  // not our file: only the link to the earlier run is lost
    log_.warning(cat(error.what(), ". This training is a run of its own there."));
  }
  if (run_.empty()) run_ = random_name();
  Metric metric{.iteration = start.iteration, .kind = "start"};
  const RunIdentity& run = start.run;
  metric.texts = {{"net_name", start.net},          {"net_file", run.net_file},
                  {"solver_file", run.solver_file}, {"started", utc_now()},
                  {"net_text", run.net_text},       {"recipe", run.recipe},
                  {"parameters", run.parameters},   {"weights", run.weights}};
  if (!run.classes.empty()) metric.texts.emplace_back("classes", run.classes);
  if (!run.resumed_from.empty()) metric.texts.emplace_back("resumed_from", run.resumed_from);
  if (start.epoch > 0) metric.values.emplace_back("epoch", start.epoch);
  write(std::move(metric));
}

void MetricsReader::write(Metric metric) {
  metric.run = run_;
  metric.time = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  const std::string line = to_json(metric) + "\n";
  (metric.kind == "confusion" ? confusion_bytes_ : other_bytes_) += line.size();
  file_.add(line, outdates_others(metric) ? RecordFile::Keep::always : RecordFile::Keep::if_small);
  if (table_) table_->add(metric, path_, file_.all_written());
}

void MetricsReader::take_confusion(const event::Confusion& confusion) {
  Metric metric{.iteration = confusion.iteration, .kind = "confusion", .net = confusion.net};
  if (!confusion.file.empty()) {
    metric.texts = {{"file", confusion.file}};
    return write(std::move(metric));
  }
  for (int64_t label = 0; label < confusion.classes; ++label) {
    const auto row = confusion.counts.begin() + label * confusion.classes;
    metric.counts.emplace_back(row, row + confusion.classes);
  }
  const auto last = written_confusions_.find(metric.net);
  const size_t bytes = confusion_bytes_ + to_json(metric).size();
  const bool due =
      confusion.asked || bytes <= std::max(kConfusionBytes, other_bytes_ / 2) ||
      last == written_confusions_.end() || metric.iteration < last->second ||
      static_cast<double>(metric.iteration) >= kConfusionGrowth * static_cast<double>(last->second);
  if (!due) {
    waiting_confusions_[metric.net] = std::move(metric);
    return;
  }
  waiting_confusions_.erase(metric.net);
  written_confusions_[metric.net] = metric.iteration;
  write(std::move(metric));
}

void MetricsReader::write_waiting_confusions() {
  for (auto& [net, metric] : std::exchange(waiting_confusions_, {})) write(std::move(metric));
}

void MetricsReader::read(const Event& event) {
  if (const auto* start = std::get_if<event::Start>(&event)) {
    begin(*start);
  } else if (const auto* display = std::get_if<event::Display>(&event)) {
    waiting_ = Metric{.iteration = display->iteration, .kind = "train"};
    waiting_->values.emplace_back("loss", display->loss);
    waiting_->values.emplace_back("data_wait", display->data_wait);
    if (display->iterations_per_second > 0)  // the first has no iterations behind it
      waiting_->values.emplace_back("iterations_per_second", display->iterations_per_second);
    add_outputs(waiting_->values, display->outputs);
  } else if (const auto* rate = std::get_if<event::LearningRate>(&event); rate && waiting_) {
    waiting_->values.emplace_back("lr", rate->rate);
    write(*waiting_);
    waiting_.reset();
  } else if (const auto* test = std::get_if<event::TestResult>(&event)) {
    Metric metric{.iteration = test->iteration, .kind = "test", .net = test->net};
    add_outputs(metric.values, test->outputs);
    if (test->loss) metric.values.emplace_back("total loss", *test->loss);
    write(metric);
  } else if (const auto* confusion = std::get_if<event::Confusion>(&event)) {
    take_confusion(*confusion);
  } else if (const auto* epoch = std::get_if<event::Epoch>(&event)) {
    Metric metric{.iteration = epoch->iteration, .kind = "epoch"};
    metric.values = {{"epoch", static_cast<double>(epoch->epoch)}, {"seconds", epoch->seconds}};
    add_outputs(metric.values, epoch->train);
    std::vector<OutputValue> test = epoch->test;
    for (OutputValue& output : test) output.name = "val_" + output.name;
    add_outputs(metric.values, test);
    write(std::move(metric));
  } else if (const auto* snapshot = std::get_if<event::SnapshotDone>(&event)) {
    const std::string& file = snapshot->state.empty() ? snapshot->weights : snapshot->state;
    Metric metric{.iteration = snapshot->iteration, .kind = "snapshot"};
    metric.texts = {{"file", file}, {"weights", snapshot->hash}};
    if (!snapshot->hash_of_average.empty())
      metric.texts.emplace_back("average", snapshot->hash_of_average);
    write(std::move(metric));
  } else if (const auto* bad = std::get_if<event::NonFiniteLoss>(&event); bad && bad->stops) {
    Metric metric{.iteration = bad->iteration, .kind = "train"};
    metric.values.emplace_back("loss", bad->loss);
    write(std::move(metric));
  } else if (const auto* skip = std::get_if<event::UpdateSkipped>(&event)) {
    Metric metric{.iteration = skip->iteration, .kind = "skip"};
    metric.values = {{"loss", skip->loss}, {"in_row", skip->in_row}};
    write(std::move(metric));
  } else if (const auto* back = std::get_if<event::RolledBack>(&event)) {
    std::erase_if(waiting_confusions_,
                  [&](const auto& one) { return one.second.iteration > back->to; });
    Metric metric{.iteration = back->to, .kind = "rollback"};
    metric.values = {{"from", static_cast<double>(back->iteration)}, {"rate_scale", back->scale}};
    metric.texts = {{"reason", back->reason}};
    write(std::move(metric));
  } else if (const auto* spike = std::get_if<event::LossSpike>(&event)) {
    Metric metric{.iteration = spike->iteration, .kind = "spike"};
    metric.values = {{"loss", spike->loss}, {"usual", spike->usual}};
    write(std::move(metric));
  } else if (const auto* early = std::get_if<event::EarlyStopped>(&event)) {
    Metric metric{.iteration = early->iteration, .kind = "early_stop"};
    metric.values = {{"best", early->best}, {"tests", early->tests}};
    metric.texts = {{"output", early->output}};
    write(std::move(metric));
  } else if (const auto* last = std::get_if<event::FinalLoss>(&event)) {
    Metric metric{.iteration = last->iteration, .kind = "train"};
    metric.values.emplace_back("loss", last->loss);
    write(metric);
  } else if (const auto* end = std::get_if<event::End>(&event)) {
    write_waiting_confusions();
    Metric metric{.iteration = end->iteration, .kind = "end"};
    if (end->early) metric.texts.emplace_back("why", "stopped on request");
    write(std::move(metric));
  }
}

}  // namespace crema
