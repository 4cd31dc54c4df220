#include "data/lists/csv.h"

#include "base/error.h"

namespace crema {
namespace {

bool csv_blank(char letter) { return letter == ' ' || letter == '\t'; }

size_t skip_blanks(std::string_view line, size_t at, char separator) {
  while (at < line.size() && csv_blank(line[at]) && (separator == ' ' || line[at] != separator))
    ++at;
  return at;
}

// Reads the quoted field that begins at `at`, and leaves `at` after its last quote.
std::string quoted_text(std::string_view line, size_t& at, const std::string& where) {
  const size_t first = at;
  std::string text;
  for (++at; at < line.size(); ++at) {
    if (line[at] == '"' && (at + 1 == line.size() || line[at + 1] != '"')) {
      ++at;
      return text;
    }
    if (line[at] == '"') ++at;
    text.push_back(line[at]);
  }
  fail(where, ":", first + 1, ": this quote is not closed in its line");
}

}  // namespace

std::vector<CsvField> csv_fields(std::string_view line, char separator, const std::string& where) {
  std::vector<CsvField> fields;
  const auto ends = [&](size_t at) {
    return at == line.size() || (separator == ' ' ? csv_blank(line[at]) : line[at] == separator);
  };
  size_t at = skip_blanks(line, 0, separator);
  while (true) {
    CsvField field;
    field.first = at;
    field.quoted = at < line.size() && line[at] == '"';
    if (field.quoted) {
      field.text = quoted_text(line, at, where);
      const size_t behind = skip_blanks(line, at, separator);
      if (separator != ' ') at = behind;
      if (!ends(at)) {
        fail(where, ":", at + 1, ": after the quote that closes a field comes `",
             line.substr(at, 20), "`; a quote inside a field is written twice");
      }
    } else {
      while (!ends(at)) ++at;
      field.text = trim(line.substr(field.first, at - field.first));
    }
    fields.push_back(std::move(field));
    const size_t next = skip_blanks(line, at, separator);
    if (separator == ' ') {
      if (next == line.size()) return fields;
      at = next;
    } else {
      if (at == line.size()) return fields;
      at = skip_blanks(line, at + 1, separator);
    }
  }
}

char csv_separator(std::string_view line) {
  for (const char separator : {',', ';', '\t'}) {
    bool quoted = false;
    char before = ',';  // a field begins
    for (const char letter : line) {
      // One in the middle of a field is a part of it.
      const bool begins = csv_blank(before) || before == ',' || before == ';';
      if (letter == '"' && (quoted || begins)) quoted = !quoted;
      if (letter == separator && !quoted) return separator;
      before = letter;
    }
  }
  return ' ';
}

}  // namespace crema
