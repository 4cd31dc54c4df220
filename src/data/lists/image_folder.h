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

// Those in the folder and in those within, by the endings of their names. Names that begin with a dot
// are passed over. Throws std::filesystem::filesystem_error.
FolderImages images_below(const std::string& folder);

}  // namespace crema
