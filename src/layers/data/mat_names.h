// The names of the files of MatRead and MatWrite: `prefix`, a name, and the number of the blob.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "data/lists/image_list.h"

namespace crema {

// The first words of the list's lines, without their last `strip` characters.
inline std::vector<std::string> mat_names(const std::string& list, int strip) {
  require(strip >= 0, "strip is ", strip, ": a number of characters, 0 or more");
  std::vector<std::string> names;
  for (const ListedImage& line : read_path_list(list)) {
    require(line.path.size() > static_cast<size_t>(strip), list, ":", line.line, ": `", line.path,
            "` is no longer than the ", strip, " characters that `strip` takes off its end");
    names.push_back(line.path.substr(0, line.path.size() - static_cast<size_t>(strip)));
  }
  return names;
}

inline std::string mat_path(const std::string& prefix, const std::string& name, size_t blob) {
  return cat(prefix, name, "_blob_", blob, ".mat");
}

}  // namespace crema
