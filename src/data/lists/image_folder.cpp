#include "data/lists/image_folder.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/strings.h"

namespace crema {
namespace {

bool is_image_name(const std::filesystem::path& path) {
  static const std::set<std::string> endings = {
      ".jpg", ".jpeg", ".jpe", ".png", ".bmp", ".dib", ".webp", ".tif", ".tiff", ".pbm", ".pgm",
      ".ppm", ".pnm",  ".pfm", ".sr",  ".ras", ".jp2", ".hdr",  ".exr", ".pic",  ".gif"};
  return endings.count(lower_case(path.extension().string())) > 0;
}

}  // namespace

FolderImages images_below(const std::string& folder) {
  FolderImages found;
  for (std::filesystem::recursive_directory_iterator at(folder), end; at != end; ++at) {
    if (starts_with(at->path().filename().string(), ".")) {
      if (at->is_directory()) at.disable_recursion_pending();
    } else if (at->is_regular_file()) {
      if (is_image_name(at->path())) {
        found.paths.push_back(at->path().string());
      } else {
        ++found.others;
      }
    }
  }
  std::sort(found.paths.begin(), found.paths.end());
  return found;
}

}  // namespace crema
