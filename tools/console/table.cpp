#include "tools/console/table.h"

#include <algorithm>
#include <iostream>

#include "base/visible.h"

namespace crema {

void print_table(std::vector<std::vector<std::string>> rows, size_t right) {
  for (auto& row : rows) std::transform(row.begin(), row.end(), row.begin(), visible);
  std::vector<size_t> widths(rows[0].size());
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string pad(widths[i] - row[i].size(), ' ');
      line += (i ? "  " : "") + (i < right ? row[i] + pad : pad + row[i]);
    }
    std::cout << line.substr(0, line.find_last_not_of(' ') + 1) << "\n";
  }
}

}  // namespace crema
