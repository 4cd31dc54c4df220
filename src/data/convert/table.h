// Table: the numbers of a text file with a row in each line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace crema {

struct Table {
  std::vector<std::string> names;  // of the columns, if the first line has them
  std::vector<size_t> label_columns;
  size_t columns = 0;
  int64_t rows = 0;
  std::vector<float> data;  // row after row, without the labels
  std::vector<float> labels;
  std::vector<int32_t> classes;  // the labels, if there is one a row and all are integers
  // Where the labels are names: these, in the order of their letters, which numbers `classes`.
  std::vector<std::string> class_names;
  bool bytes = true;  // the data are integers from 0 to 255

  size_t width() const { return columns - label_columns.size(); }
};

// Fields are separated as the first line shows: by commas, semicolons, tabs or blanks. "-" is the
// standard input. `labels`: names or numbers of columns. A single one may hold names of classes. The
// first line names the columns if a field of it is no number, unless that can only be the name of a
// class: its column is a label, given by number, and so is the name below it. Error names PATH:LINE:COLUMN.
Table read_table(const std::string& path, const std::vector<std::string>& labels);

}  // namespace crema
