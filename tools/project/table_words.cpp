#include "tools/project/table_words.h"

#include <algorithm>
#include <set>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/visible.h"
#include "data/lists/csv.h"
#include "data/lists/labelled_lines.h"

namespace crema {

namespace {

constexpr size_t most_counted = 100, most_shown = 8;

struct Column {
  std::string name;
  std::set<std::string> words;
  int64_t empty = 0;
};

// The columns of a table; its first line names them.
std::vector<Column> columns_of(const std::string& path) {
  std::vector<Column> columns;
  char separator = ',';
  for (const std::string& line : split(read_text(path), '\n')) {
    if (trim(line).empty()) continue;
    const bool first = columns.empty();
    if (first) separator = csv_separator(line);
    const std::vector<CsvField> fields = csv_fields(line, separator, path);
    if (first) columns.resize(fields.size());
    for (size_t c = 0; c < std::min(columns.size(), fields.size()); ++c) {
      const std::string text(trim(fields[c].text));
      Column& column = columns[c];
      if (first) {
        column.name = text;
      } else if (text.empty()) {
        ++column.empty;
      } else if (!number_in(text) && column.words.size() <= most_counted) {
        column.words.insert(text);
      }
    }
  }
  return columns;
}

std::string listed(std::vector<std::string> texts) {
  const size_t more = texts.size() > most_shown ? texts.size() - most_shown : 0;
  texts.resize(texts.size() - more);
  return cat(join(texts, ", "), more > 0 ? cat(" and ", more, " more") : "");
}

}  // namespace

std::string words_in_table(const std::string& path, const std::string& label) {
  std::vector<std::string> words, empty;
  try {
    const std::vector<Column> columns = columns_of(path);
    for (size_t c = 0; c < columns.size(); ++c) {
      const Column& column = columns[c];
      const auto from_end = static_cast<int64_t>(c) - static_cast<int64_t>(columns.size());
      if (label == column.name || label == cat(c) || label == cat(from_end)) continue;
      const std::string name =
          column.name.empty() || number_in(column.name) ? cat("number ", c) : visible(column.name);
      const bool many = column.words.size() > most_counted;
      if (!column.words.empty())
        words.push_back(cat(name, " (",
                            many ? cat("over ", most_counted) : cat(column.words.size()),
                            " different)"));
      if (column.empty > 0) empty.push_back(cat(name, " ", column.empty));
    }
  } catch (const Error&) {
    return "";
  }
  return cat(words.empty() ? "" : "columns of words: " + listed(words),
             words.empty() || empty.empty() ? "" : "; ",
             empty.empty() ? "" : "empty cells: " + listed(empty));
}

}  // namespace crema
