#include "data/lists/labelled_lines.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "data/lists/csv.h"

namespace crema {
namespace {

constexpr const char* kBlankLetters = " \t";

// Whether a line is CSV, and not `path label`.
bool looks_csv(std::string_view line) {
  if (line.find(',') == std::string_view::npos) return false;
  const LastWord last(line);
  if (number_in(last.word) && !last.rest.empty() && last.rest.back() != ',') return false;
  const auto number = [](std::string_view text) { return number_in(trim(text)).has_value(); };
  return number(line.substr(line.rfind(',') + 1));
}

}  // namespace

std::optional<double> number_in(std::string_view word) {
  double value = 0;
  if (!word.empty() && word.front() == '+') word.remove_prefix(1);
  const auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (end != word.data() + word.size() || word.empty()) return {};
  if (problem == std::errc::result_out_of_range) return HUGE_VAL;
  if (problem != std::errc() || !std::isfinite(value)) return {};
  return value;
}

LastWord::LastWord(std::string_view line) {
  const size_t blank = line.find_last_of(kBlankLetters);
  if (blank == std::string_view::npos) return;
  word = line.substr(blank + 1);
  rest = line.substr(0, line.find_last_not_of(kBlankLetters, blank) + 1);
}

LabelledLines::LabelledLines(const std::string& list, std::string_view text) {
  std::string_view lines[2];
  for (std::string_view& line : lines) {
    while (line.empty() && !text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size());
      line = trim(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }
  const auto comma = [](std::string_view line) { return line.find(',') != std::string_view::npos; };
  const LastWord last(lines[0]);
  const bool plain = number_in(last.word) && !last.rest.empty();
  csv_ = comma(lines[0]) && (ends_with(lower_case(list), ".csv") || looks_csv(lines[0]) ||
                             (!plain && looks_csv(lines[1])));
}

bool LabelledLines::take_words(std::string_view line, std::string& path,
                               std::vector<LabelWord>& labels) const {
  while (labels_ == 0 || labels.size() < labels_) {
    const LastWord last(line);
    const std::optional<double> label = number_in(last.word);
    if (!label || last.rest.empty()) break;
    labels.insert(labels.begin(), {std::string(last.word), *label});
    line = last.rest;
  }
  path = line;
  return !labels.empty();
}

// Commas in a path need no quotes: only the last fields are labels.
bool LabelledLines::take_fields(std::string_view line, const std::string& where, std::string& path,
                                std::vector<LabelWord>& labels) const {
  const std::vector<CsvField> fields = csv_fields(line, ',', where);
  size_t of_path = fields.size();
  while (of_path > 1 && (labels_ == 0 || labels.size() < labels_)) {
    const std::string& text = fields[of_path - 1].text;
    const std::optional<double> label = number_in(text);
    if (!label) break;
    labels.insert(labels.begin(), {text, *label});
    --of_path;
  }
  if (labels.empty()) return false;
  const bool quoted = std::any_of(fields.begin(), fields.begin() + static_cast<ptrdiff_t>(of_path),
                                  [](const CsvField& field) { return field.quoted; });
  if (quoted && of_path > 1) {
    const CsvField& extra = fields[of_path - 1];
    fail(where, ":", extra.first + 1, ": found `", extra.text, "` where a number was expected");
  }
  path = fields[0].text;
  if (of_path > 1) {
    const size_t end = line.rfind(',', fields[of_path].first - 1);
    path = trim(line.substr(0, end));
  }
  return !path.empty();
}

LabelledLines::Kind LabelledLines::take(std::string_view line, const std::string& where,
                                        std::string& path, std::vector<LabelWord>& labels) {
  const bool first = first_;
  first_ = false;
  labels.clear();
  const bool good = csv_ ? take_fields(line, where, path, labels) : take_words(line, path, labels);
  if (!good) return csv_ && first ? Kind::names : Kind::wrong;
  if (labels.size() < labels_)
    fail(where, ": has ", labels.size(), " labels, but the first line has ", labels_);
  labels_ = labels.size();
  return Kind::labelled;
}

}  // namespace crema
