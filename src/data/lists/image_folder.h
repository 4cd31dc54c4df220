// The image files in a folder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace crema {

struct FolderImages {
  std::vector<std::string> paths;  // in their order, beginning with the folder's
  int64_t others = 0;              // files that are none
};

// Those in the folder and its subfolders, by file suffix. Skips names that begin with a dot. Throws
// std::filesystem::filesystem_error.
FolderImages images_below(const std::string& folder);

}  // namespace crema
