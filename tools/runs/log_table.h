// The tables in a training log: the nets' outputs, by iteration.
#pragma once

#include <cstdint>
#include <istream>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace crema {

struct LogTable {
  struct Row {
    int64_t iteration = 0;
    double seconds = 0;                           // trained so far; nan where lines have no times
    double rate = 0;                              // of this iteration; nan: no line says it
    std::vector<std::optional<double>> values{};  // none: the row has no such output
  };
  // Names of outputs. An output of several elements has a column for each: score, score[1], ...
  std::vector<std::string> columns;
  std::vector<Row> rows;
};

struct LogTables {
  LogTable train;
  std::map<int, LogTable> tests;  // by number of the test net
};

// Reads logs of Caffe, its forks and Crema.
//   - Rows that a resumed or rolled back run computes again replace the earlier ones.
//   - In a log of several consecutive runs, time continues from run to run: pauses do not count.
//   - With several processes only the first one's lines are read.
//   - Without lines of outputs, in the oldest logs, the losses of "Iteration N, loss = v" and the
//     "Test score #0" are taken.
LogTables read_log(std::istream& log);

// "NumIters,Seconds,LearningRate,accuracy,loss\n0.0,0.12,0.01,...": the numbers as Python writes
// them, as Caffe's parse_log.py does.
std::string csv_of(const LogTable& table);

}  // namespace crema
