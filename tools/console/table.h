// Text tables on stdout.
#pragma once

#include <string>
#include <vector>

namespace crema {

// Prints rows of cells, each column as wide as its widest cell; the columns from `right` on are
// numbers. Names in them are written as visible() shows them.
void print_table(std::vector<std::vector<std::string>> rows, size_t right);

}  // namespace crema
