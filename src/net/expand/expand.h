// Expands `include`, variables, `repeat` and `if` in a prototxt file (proto/README.md): later
// stages see plain text, with positions in the files that a person wrote.
#pragma once

#include <functional>
#include <optional>

#include "net/expand/literal.h"
#include "net/expand/source_text.h"

namespace crema {

// What an editor adds to an expansion.
struct ExpandHooks {
  // The text of a file that is changed, but not saved; none: as it is on disk.
  std::function<std::optional<std::string>(const std::string& path)> unsaved;
  // Called with each value that is computed, and where its expression begins and ends.
  std::function<void(const WrittenFile& file, size_t begin, size_t end, const Literal& value)>
      computed;
};

// `text` is the content of the file `path`. `given` are values for its variables, which override
// those that it sets with ?=; the names of those that were used are added to `used`. A text without
// anything to expand is returned unchanged. Error: "file:line:column (how it came there): what".
SourceText expand(const std::string& path, const std::string& text, const Variables& given = {},
                  std::vector<std::string>* used = nullptr, const ExpandHooks& hooks = {});

}  // namespace crema
