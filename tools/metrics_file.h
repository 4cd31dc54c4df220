// metrics.jsonl: the course of trainings, one JSON object a line, for people's own tools and for
// `crema report`.
//   {"iteration":100,"kind":"train","run":"5f0c92ab","time":1.52,"values":{"loss":0.31,"lr":0.01}}
// run: whose line it is; a folder's runs follow each other in one file, and a resumed run keeps its
// name. kind: "start" (training begins at that iteration; after a resume, later lines of the same
// run are outdated), "train" (at display), "test" (values of test net number `net`), "snapshot"
// (with `file`, and hashes of the `weights` and of their `average`), "end". time: seconds since
// this start. data_wait, among the values of "train": the share of the time since the last line, 0
// to 1, that training waited for data. Besides, a "start" says what is trained: net_name, net_file,
// solver_file, started (UTC); net_text, recipe (hashes of the net, of net and solver), parameters
// (of their names and shapes), weights (of their values); and resumed_from.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace crema {

struct Metric {
  int64_t iteration = 0;
  std::string kind{};
  std::string run{};  // "" in files of older versions
  int net = 0;        // of "test"
  double time = 0;
  std::vector<std::pair<std::string, std::string>> texts{};  // all other members that are strings
  std::vector<std::pair<std::string, double>> values{};

  std::string text(const std::string& name) const;  // "": none
};

// What counts of a run: lines that a later "start" outdates are dropped.
struct Run {
  std::string id;
  std::vector<Metric> metrics;

  int64_t iterations() const;
  double last_loss() const;  // nan: none
  // What its first start says of it; "" where an older version wrote it.
  std::string identity(const std::string& name) const;
  // The line that has these weights; null: none.
  const Metric* with_weights(const std::string& hash) const;
};

// A line without its newline. Numbers that JSON has not (nan, inf) become null.
std::string to_json(const Metric& metric);

// All runs of a file, that which was started or resumed last behind the others. Those without names
// get some. Error names the line that is no such object; a last line that a kill cut short is left
// out.
std::vector<Run> read_runs(const std::string& path);

}  // namespace crema
