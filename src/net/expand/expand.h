// Expands `include`, variables, `repeat` and `if` in a prototxt file (proto/README.md): later
// stages see plain text, with positions in the files that a person wrote.
#pragma once

#include "net/expand/literal.h"
#include "net/expand/source_text.h"

namespace crema {

// `text` is the content of the file `path`. `given` are values for its variables, which override
// those that it sets with ?=; the names of those that were used are added to `used`. A text without
// anything to expand is returned unchanged. Error: "file:line:column (how it came there): what".
SourceText expand(const std::string& path, const std::string& text, const Variables& given = {},
                  std::vector<std::string>* used = nullptr);

}  // namespace crema
