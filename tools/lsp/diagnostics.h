// What is wrong with a file in an editor.
#pragma once

#include <string>
#include <vector>

#include "base/log.h"
#include "tools/lsp/document.h"

namespace crema {

struct Diagnostic {
  size_t begin = 0, end = 0;  // offsets
  Severity severity = Severity::error;
  std::string text;
  std::string replacement;  // what the range should be instead; "": unknown
};

// Syntax, and names that the schema does not have: each statement is looked at, whatever is wrong with others.
std::vector<Diagnostic> diagnose_statements(const Document& document);

// Behind a top: its shape.
struct ShapeHint {
  size_t offset = 0;
  std::string blob, shape;
};

struct Meaning {
  std::vector<Diagnostic> diagnostics;
  std::vector<ShapeHint> shapes;  // in the order of the text
};

// The first mistake that Crema finds as it reads a whole net or solver, and makes the net's layers in both phases, with
// their shapes. For files without mistakes of the first kind. Data are not opened: their shapes are assumed, and a net
// for which that is not possible is only read. Files that use variables which others set are left out.
Meaning meaning_of(const Document& document);

}  // namespace crema
