// metrics.jsonl: the course of training runs, one JSON object per line, for the user's own tools
// and for `crema report`.
//   {"iteration":100,"kind":"train","run":"5f0c92ab","time":1.52,"values":{"loss":0.31,"lr":0.01}}
// run: the run that wrote the line; a folder's runs follow each other in one file, and a resumed
// run keeps its name. kind: "start" (training begins at that iteration; after a resume, later lines
// of the same run are outdated), "train" (at display), "test" (values of test net number `net`),
// "confusion" (`counts` of test net number `net`: a row is a label, a column the net's answer; with
// -metrics and many classes only the `file` that has them; without -metrics the last test's, and
// as many earlier ones as keep the file small), "spike" (in run folders: a `loss` far above the `usual`
// one of the iterations before it), "snapshot" (with `file`, and hashes of the `weights`
// and of their `average`), "end". time: seconds since this start. Among the values of "train" are
// iterations_per_second since the last line, tests included, and data_wait, the share of that time,
// 0 to 1, that training waited for data. A "start" also says what is trained: net_name,
// net_file, solver_file, started (UTC); net_text, recipe (hashes of the net, of net and solver),
// parameters (of their names and shapes), weights (of their values); resumed_from; the names of the
// classes, one a line; and among its values epoch, the iterations that read each record of the
// training data once. An "end" that was asked for says why.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace crema {

struct Metric {
  int64_t iteration = 0;
  std::string kind{};
  std::string run{};  // "" in files of older versions
  int net = 0;        // of "test" and "confusion"
  double time = 0;
  std::vector<std::pair<std::string, std::string>> texts{};  // all other string members
  std::vector<std::pair<std::string, double>> values{};
  std::vector<std::vector<int64_t>> counts{};

  std::string text(const std::string& name) const;  // "": none
};

// The valid lines of a run: lines that a later "start" outdates are dropped.
struct Run {
  std::string id;
  std::vector<Metric> metrics;

  int64_t iterations() const;
  double last_loss() const;  // nan: none
  // A member of its first start; "" where an older version wrote it.
  std::string identity(const std::string& name) const;
  // The line with these weights; null: none.
  const Metric* with_weights(const std::string& hash) const;
};

// A line without its newline. Values that JSON cannot represent (nan, inf) become null.
std::string to_json(const Metric& metric);

// What is read of a file that may be another user's; without an end where the user names the file.
struct MetricsLimits {
  size_t line = SIZE_MAX;  // bytes
  size_t lines = SIZE_MAX, runs = SIZE_MAX;
  size_t restarts = SIZE_MAX;  // lines that starts and rollbacks look at, to drop outdated ones
};

// The runs in the text of a file that may still grow, ordered by when they were last started or
// resumed. Unnamed runs get names.
class RunsInText {
 public:
  // `path`: for messages.
  explicit RunsInText(std::string path, const MetricsLimits& limits = {})
      : path_(std::move(path)), limits_(limits) {}
  // Takes the next part of the text, which may end within a line. Error names a line that is not
  // such an object, or the limit that is exceeded.
  void add(std::string_view text);
  // No more comes. A last line without its newline counts if it is whole: a kill cuts lines off.
  void finish();
  const std::vector<Run>& runs() const { return runs_; }
  size_t lines() const { return lines_; }

 private:
  void add_line(std::string_view line, bool cut);

  std::string path_, rest_;
  MetricsLimits limits_;
  size_t lines_ = 0, looked_at_ = 0;
  int unnamed_ = 0;
  std::vector<Run> runs_;
};

// All runs of a file.
std::vector<Run> read_runs(const std::string& path);

}  // namespace crema
