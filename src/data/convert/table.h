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
  std::vector<int32_t> classes;  // the labels, if there is one per row and all are integers
  // If the labels are names: these in alphabetical order, numbered by `classes`.
  std::vector<std::string> class_names;
  bool bytes = true;  // the data are integers from 0 to 255

  size_t width() const { return columns - label_columns.size(); }
};

// Fields are separated as the first line shows: by commas, semicolons, tabs or blanks. "-" is the
// standard input. `labels`: names or numbers of columns. A single one may have class names. The
// first line names the columns if one of its fields is not a number, unless that can only be a
// class name: its column is a label, given by number, and the field below it is also a name. Error
// names PATH:LINE:COLUMN.
Table read_table(const std::string& path, const std::vector<std::string>& labels);

}  // namespace crema
