// What is wrong with a file in an editor.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "tools/lsp/document.h"

namespace crema {

// What to write in place of a range.
struct Fix {
  size_t begin = 0, end = 0;  // offsets
  std::string text, title;
};

struct Diagnostic {
  enum class Tag { none, unnecessary, deprecated };

  size_t begin = 0, end = 0;  // offsets
  Severity severity = Severity::error;
  std::string text;
  std::optional<Fix> fix;
  Tag tag = Tag::none;
};

// X of `(did you mean "X"?)`, with which the library ends its messages about unknown words; "".
std::string suggested(const std::string& text);

// Syntax, and names that the schema does not have: each statement is looked at, whatever is wrong with others.
std::vector<Diagnostic> diagnose_statements(const Document& document);

}  // namespace crema
