#include <algorithm>

#include "base/strings.h"
#include "net/syntax/syntax.h"

namespace crema {

size_t SyntaxTree::line_of(size_t offset) const {
  return static_cast<size_t>(std::upper_bound(lines.begin(), lines.end(), offset) - lines.begin()) -
         1;
}

std::string SyntaxTree::place(size_t offset) const {
  const size_t line = line_of(offset);
  return cat(line + 1, ":", 1 + offset - lines[line]);
}

bool SyntaxTree::is_first_on_line(int index) const {
  return index == 0 || token(index).gap.find('\n') != std::string_view::npos;
}

}  // namespace crema
