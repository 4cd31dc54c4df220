#include "data/convert/class_folders.h"

#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "data/lists/image_folder.h"

namespace crema {
ClassFolders read_class_folders(const std::string& root, Log& log) {
  const std::string top = root.empty() ? "./" : ends_with(root, "/") ? root : root + "/";
  require(folder_exists(top), root, ": is no folder; it should have a folder for each class");
  ClassFolders all;
  int64_t others = 0;
  try {
    for (const std::string& name : list_folder(top)) {
      if (is_system_name(name)) continue;
      if (folder_exists(top + name)) {
        all.classes.push_back(name);
      } else {
        ++others;
      }
    }
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
  } catch (const std::filesystem::filesystem_error& problem) {
    fail(root, ": cannot be read: ", problem.what());
  }
  require(
      !all.classes.empty(), root,
      ": has no folder for any class; put the pictures of each class into a folder of their own, "
      "ROOT/CLASS/PICTURE.jpg, or give a list");
  require(!all.images.empty(), root, ": its ", all.classes.size(),
          " folders have no picture, by the endings of their names (.jpg, .png, ...)");
  if (others > 0)
    log.warning(cat(others, others == 1 ? " file of " : " files of ", root,
                    others == 1 ? " is" : " are", " left out: not a picture, by its name, in a ",
                    "class's folder"));
  return all;
}

}  // namespace crema
