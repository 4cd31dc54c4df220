// What a whole file means: its mistakes beyond its words, and what an editor shows in its lines.
#pragma once

#include <set>
#include <vector>

#include "tools/lsp/diagnostics.h"
#include "tools/lsp/hints.h"
#include "tools/lsp/open_files.h"

namespace crema {

struct Meaning {
  std::vector<Diagnostic> diagnostics;
  std::vector<Hint> hints;      // in the order of the text
  std::set<std::string> files;  // others that were read for it
};

// The mistakes that Crema finds as it reads a whole net or solver and makes the net's layers in both phases, and the
// warnings of `crema check` that need no data. words: the mistakes in its words; layers with one are left out, as a solver
// is. Data are not opened: their
// shapes are assumed, and a net for which that is not possible is only read. Files that use variables which others
// set are left out.
Meaning meaning_of(const Document& document, const OpenFiles& files,
                   const std::vector<Diagnostic>& words);

}  // namespace crema
