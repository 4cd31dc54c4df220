// Folders that divide a data set into training and testing: DATA/train and DATA/test.
#pragma once

#include <string>
#include <vector>

namespace crema {

// Names of folders in the one that was given; both "" if it is not divided.
struct SplitFolders {
  std::string training, testing;
  std::string unused{};  // a further test set
};

// train with one of val, valid, validation and test, in whatever case. With both a validation and a test set
// the former is taken.
SplitFolders split_folders(const std::string& folder);

// The path of the folder in `folder` that has the first of these names, in whatever case; "": it has none of them.
std::string folder_named(const std::string& folder, const std::vector<std::string>& names);

}  // namespace crema
