#include "tools/lsp/places.h"

#include <algorithm>
#include <charconv>

#include "tools/lsp/names.h"
#include "tools/lsp/net_reading.h"

namespace crema {
namespace {

size_t number_at(const std::string& text, size_t begin, size_t* value) {
  const auto result = std::from_chars(text.data() + begin, text.data() + text.size(), *value);
  return static_cast<size_t>(result.ptr - text.data());
}

}  // namespace

std::optional<size_t> place_in(const Document& document, const std::string& text, size_t* end) {
  const std::string prefix = name_of(document) + ":";
  const size_t at = text.find(prefix);
  if (at == std::string::npos) return std::nullopt;
  size_t row = 0, column = 0;
  *end = number_at(text, at + prefix.size(), &row);
  if (*end >= text.size() || text[*end] != ':') return std::nullopt;
  *end = number_at(text, *end + 1, &column);
  if (row == 0 || column == 0) return std::nullopt;
  return document.offset_at(row, column);
}

size_t token_index(const SyntaxTree& tree, size_t offset) {
  const auto token = std::partition_point(tree.tokens.begin(), tree.tokens.end() - 1,
                                          [&](const Token& t) { return end_of(t) <= offset; });
  return static_cast<size_t>(token - tree.tokens.begin());
}

}  // namespace crema
