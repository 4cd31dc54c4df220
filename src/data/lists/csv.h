// Splits lines of CSV into fields: a field that begins with a quote ends with the next, and a quote
// inside it is written twice.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace crema {

struct CsvField {
  std::string text;  // without the quotes, or without blanks around it
  size_t first = 0;  // where it begins in the line
  bool quoted = false;
};

// A separator of ' ' matches any number of blanks. Error names WHERE:COLUMN.
std::vector<CsvField> csv_fields(std::string_view line, char separator, const std::string& where);

// The separator of this line's fields: a comma, semicolon or tab, the first of these that it has
// outside of quotes; otherwise a blank.
char csv_separator(std::string_view line);

}  // namespace crema
