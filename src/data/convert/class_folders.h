// Pictures in a folder for each class.
#pragma once

#include <string>
#include <vector>

#include "base/log.h"
#include "data/lists/image_list.h"

namespace crema {

struct ClassFolders {
  std::vector<std::string> classes;  // in the order of their names
  std::vector<ListedImage> images;   // with paths from the root, class after class, by name
};

// All pictures in the folders of `root`, at any depth, by the endings of their names. Names that
// begin with a dot are passed over; other files are counted in a log line.
ClassFolders read_class_folders(const std::string& root, Log& log);

}  // namespace crema
