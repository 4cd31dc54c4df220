#include "data/convert/table.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/visible.h"
#include "data/databases/exact_label.h"
#include "data/lists/csv.h"
#include "data/lists/labelled_lines.h"

namespace crema {
namespace {

// Passes each line that is not blank, and its number.
template <typename Take>
void each_line(std::string_view text, const Take& take) {
  for (int64_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (!trim(line).empty()) take(line, number);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

// A field in a message.
std::string shown(const std::string& text) {
  constexpr size_t most = 60;
  return visible(text.size() > most ? text.substr(0, most) + "..." : text);
}

// What to do about a field that is no number.
std::string advice(const std::string& text) {
  if (text.empty()) return "; fill it, for example with the column's mean, or remove its row";
  std::string point = text;
  std::replace(point.begin(), point.end(), ',', '.');
  if (point != text && number_in(point)) return "; write decimals with a point: " + shown(point);
  return "; remove the column, or write one of 0 and 1 for each of its words";
}

class TableReader {
 public:
  TableReader(const std::string& path, const std::vector<std::string>& labels)
      : path_(path), wanted_(labels) {}

  Table read() {
    const std::string text = read_text(path_ == "-" ? "/dev/stdin" : path_);
    each_line(text, [&](std::string_view line, int64_t number) {
      if (pending_.empty() && table_.columns == 0) {
        pending_ = line;  // the line after it helps to classify it
        pending_number_ = number;
      } else {
        take_pending(line);
        take(line, number);
      }
    });
    take_pending("");
    require(table_.rows > 0, path_, ": has no row of numbers");
    number_classes();
    if (!integers_ || table_.label_columns.size() != 1) table_.classes.clear();
    return std::move(table_);
  }

 private:
  std::string place(int64_t line, const CsvField& field) const {
    return cat(path_, ":", line, ":", field.first + 1, ": ");
  }
  std::string column_name(size_t column) const {
    return table_.names.empty() ? cat("column ", column)
                                : cat("column ", column, " (\"", table_.names[column], "\")");
  }

  void take_pending(std::string_view next) {
    if (pending_.empty()) return;
    next_ = next;
    take(std::exchange(pending_, {}), pending_number_);
  }

  void take(std::string_view line, int64_t number) {
    const bool first = table_.columns == 0;
    if (first) separator_ = csv_separator(line);
    const std::vector<CsvField> fields = csv_fields(line, separator_, cat(path_, ":", number));
    if (first) {
      table_.columns = fields.size();
      const bool names = names_columns(fields);
      if (names)
        for (const CsvField& field : fields) table_.names.push_back(field.text);
      find_labels();
      if (names) return;
    }
    if (fields.size() != table_.columns) {
      fail(path_, ":", number, ": has ", fields.size(), " fields, but the first line has ",
           table_.columns);
    }
    for (size_t column = 0; column < fields.size(); ++column) {
      const CsvField& field = fields[column];
      const std::optional<double> value = number_in(field.text);
      if (is_label_[column] && takes_name(column, field, value.has_value(), number)) continue;
      if (!value) {
        fail(place(number, field), column_name(column),
             field.text.empty() ? " is empty" : cat(" holds `", shown(field.text), "`"),
             " where a number was expected", advice(field.text));
      }
      if (!std::isfinite(static_cast<float>(*value))) {
        fail(place(number, field), column_name(column), " holds ", shown(field.text),
             ", which is beyond the numbers of a float32");
      }
      if (is_label_[column]) {
        take_label(*value, number, field);
      } else {
        table_.data.push_back(static_cast<float>(*value));
        table_.bytes = table_.bytes && *value >= 0 && *value <= 255 && *value == std::trunc(*value);
      }
    }
    ++table_.rows;
  }

  // The fields of the second line. The main loop reports mistakes in it.
  std::vector<CsvField> fields_below() const {
    try {
      return csv_fields(next_, separator_, path_);
    } catch (const Error&) {
      return {};
    }
  }

  // A field that is no number is a column's name, unless it is a label like the one below it.
  bool names_columns(const std::vector<CsvField>& fields) const {
    const std::vector<CsvField> below = fields_below();
    for (size_t column = 0; column < fields.size(); ++column) {
      const std::string& text = fields[column].text;
      if (text.empty() || number_in(text)) continue;
      const bool label = std::any_of(wanted_.begin(), wanted_.end(), [&](const std::string& one) {
        return one == cat(column) ||
               one == cat(static_cast<int64_t>(column) - static_cast<int64_t>(fields.size()));
      });
      if (!label || (column < below.size() && number_in(below[column].text))) return true;
    }
    return false;
  }

  // The first row decides whether the label is a name or a number.
  bool takes_name(size_t column, const CsvField& field, bool number, int64_t line) {
    if (table_.rows == 0) named_ = !number && !field.text.empty();
    if (!named_ && (number || field.text.empty())) return false;
    require(!field.text.empty(), place(line, field), column_name(column),
            " is empty where the name of a class was expected");
    require(named_ && !number, place(line, field), column_name(column), " holds `",
            shown(field.text), "`, a ", number ? "number" : "name", ", but the lines before have ",
            named_ ? "names of classes" : "numbers", "; classes are all names or all numbers");
    require(table_.label_columns.size() == 1, place(line, field), column_name(column),
            " holds the name `", shown(field.text), "`, but there are ",
            table_.label_columns.size(),
            " labels a row; a record has names of classes for a single label, or numbers");
    const auto [at, added] =
        numbers_.try_emplace(field.text, static_cast<int32_t>(numbers_.size()));
    table_.classes.push_back(at->second);
    return true;
  }

  // The classes were numbered as they came.
  void number_classes() {
    if (!named_) return;
    std::vector<int32_t> sorted(numbers_.size());
    for (const auto& [name, number] : numbers_) {
      sorted[static_cast<size_t>(number)] = static_cast<int32_t>(table_.class_names.size());
      table_.class_names.push_back(name);
    }
    for (int32_t& label : table_.classes) {
      label = sorted[static_cast<size_t>(label)];
      table_.labels.push_back(static_cast<float>(label));
    }
  }

  void take_label(double value, int64_t line, const CsvField& field) {
    const bool integer = value == std::trunc(value) && std::abs(value) <= INT32_MAX;
    integers_ = integers_ && integer;
    if (!integer) return table_.labels.push_back(static_cast<float>(value));
    try {
      table_.labels.push_back(exact_label(static_cast<int64_t>(value)));
    } catch (const Error& problem) {
      fail(place(line, field), problem.what());
    }
    table_.classes.push_back(static_cast<int32_t>(value));
  }

  // A name goes before a number that is equal to it.
  void find_labels() {
    is_label_.resize(table_.columns);
    for (const std::string& label : wanted_) {
      const auto named = std::find(table_.names.begin(), table_.names.end(), label);
      int64_t number = 0;
      if (named != table_.names.end()) {
        number = named - table_.names.begin();
      } else {
        const char* const end = label.data() + label.size();
        const auto [rest, problem] = std::from_chars(label.data(), end, number);
        const auto columns = static_cast<int64_t>(table_.columns);
        if (problem != std::errc() || rest != end || number < -columns || number >= columns) {
          fail(path_, ": has no column \"", label, "\"", did_you_mean(label, table_.names),
               " for -label; it has ", columns,
               table_.names.empty() ? " columns without names, numbered from 0"
                                    : cat(" columns: ", join(table_.names, ", ")));
        }
        if (number < 0) number += columns;
      }
      require(!is_label_[static_cast<size_t>(number)], path_, ": -label names the column \"", label,
              "\" twice");
      is_label_[static_cast<size_t>(number)] = true;
      table_.label_columns.push_back(static_cast<size_t>(number));
    }
    require(table_.width() > 0, path_,
            ": has no column besides its label (-label); a net needs some to learn from");
  }

  const std::string path_;
  const std::vector<std::string> wanted_;
  Table table_;
  char separator_ = ',';
  std::string_view pending_, next_;  // the first line, and the one after it
  int64_t pending_number_ = 0;
  std::vector<bool> is_label_;
  bool integers_ = true;                    // all labels
  bool named_ = false;                      // the labels are names of classes
  std::map<std::string, int32_t> numbers_;  // the labels, in the order of the rows
};

}  // namespace

Table read_table(const std::string& path, const std::vector<std::string>& labels) {
  return TableReader(path, labels).read();
}

}  // namespace crema
