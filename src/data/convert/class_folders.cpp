#include "data/convert/class_folders.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "data/lists/image_folder.h"

namespace crema {
namespace {

namespace fs = std::filesystem;

bool hidden_name(const fs::path& path) { return starts_with(path.filename().string(), "."); }

}  // namespace

ClassFolders read_class_folders(const std::string& root, Log& log) {
  const std::string top = root.empty() ? "./" : ends_with(root, "/") ? root : root + "/";
  require(folder_exists(top), root, ": is no folder; it should have a folder for each class");
  ClassFolders all;
  int64_t others = 0;
  try {
    for (const auto& entry : fs::directory_iterator(top)) {
      if (hidden_name(entry.path())) continue;
      if (entry.is_directory()) {
        all.classes.push_back(entry.path().filename().string());
      } else {
        ++others;
      }
    }
    std::sort(all.classes.begin(), all.classes.end());
    for (size_t i = 0; i < all.classes.size(); ++i) {
      const FolderImages pictures = images_below(top + all.classes[i]);
      others += pictures.others;
      if (pictures.paths.empty())
        log.warning(cat(top, all.classes[i], ": has no picture, and so class ", i, " has none"));
      for (const std::string& picture : pictures.paths) {
        ListedImage image;
        image.path = picture.substr(top.size());
        image.class_number = static_cast<int32_t>(i);
        all.images.push_back(std::move(image));
      }
    }
  } catch (const fs::filesystem_error& problem) {
    fail(root, ": cannot be read: ", problem.what());
  }
  require(!all.classes.empty(), root,
          ": has no folder for any class; give a list, or ROOT/CLASS/PICTURE.jpg");
  require(!all.images.empty(), root, ": its ", all.classes.size(),
          " folders have no picture, by the endings of their names (.jpg, .png, ...)");
  if (others > 0)
    log.warning(cat(others, others == 1 ? " file" : " files", " of ", root,
                    " that are no pictures in a class's folder, by their names, are "
                    "left out"));
  return all;
}

}  // namespace crema
