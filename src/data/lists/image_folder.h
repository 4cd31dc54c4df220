// The image files in a folder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace crema {

// Whether a file or folder of this name belongs to an operating system or archive, not to the data:
// .DS_Store, ._1.png, __MACOSX, Thumbs.db.
bool is_system_name(const std::string& name);

struct FolderImages {
  std::vector<std::string> paths;  // in their order, beginning with the folder's
  int64_t others = 0;              // files that are none
};

// Those in the folder and its subfolders, by file suffix. Skips system names. Throws
// std::filesystem::filesystem_error.
FolderImages images_below(const std::string& folder);

}  // namespace crema
