// The cells of a table that are no numbers.
#pragma once

#include <string>

namespace crema {

// "columns of words: colour (3 different), city (over 100 different); empty cells: age 12": all of a
// CSV file besides its label column, a name or number. "" if there are none, or the file cannot be
// read as a table.
std::string words_in_table(const std::string& path, const std::string& label);

}  // namespace crema
