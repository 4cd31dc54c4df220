// Variables that a file uses and does not set: those that include it give them.
#pragma once

#include "tools/lsp/open_files.h"

namespace crema {

// Whether a file takes variables from those that include it. One that has nearly the name of another is a slip. A file
// that only includes others also takes what they take and it does not give them.
bool takes_variables(const Document& document, const OpenFiles& files);

}  // namespace crema
