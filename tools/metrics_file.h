// metrics.jsonl: the course of a training, one JSON object a line, for people's own tools and for
// `crema report`.
//   {"iteration":100,"kind":"train","time":1.52,"values":{"loss":0.31,"lr":0.0099}}
// kind: "start" (training begins at that iteration; after a resume, later lines of an earlier run
// are outdated), "train" (at display), "test" (values of test net number `net`), "snapshot" (with
// `file`), "end". time: seconds since this run began. data_wait, among the values of "train": the
// share of the time since the last line, 0 to 1, that training waited for data.
#pragma once

#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace crema {

struct Metric {
  int64_t iteration = 0;
  std::string kind{};
  int net = 0;         // of "test"
  std::string file{};  // of "snapshot"
  double time = 0;
  std::vector<std::pair<std::string, double>> values{};
};

// A line without its newline. Numbers that JSON has not (nan, inf) become null.
std::string to_json(const Metric& metric);

// All that counts of a file: lines that a later "start" outdates are dropped. Error names the line
// that is no such object; a last line that a kill cut short is left out.
std::vector<Metric> read_metrics(const std::string& path);

}  // namespace crema
