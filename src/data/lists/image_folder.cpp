#include "data/lists/image_folder.h"

#include <algorithm>
#include <filesystem>

#include "base/strings.h"
#include "data/images/image_names.h"

namespace crema {
namespace {

bool is_image_name(const std::filesystem::path& path) {
  const std::string dotted = lower_case(path.extension().string());
  return !dotted.empty() && is_image_ending(dotted.substr(1));
}

}  // namespace

bool is_system_name(const std::string& name) {
  if (starts_with(name, ".")) return true;
  // __MACOSX comes with archives from macOS, @eaDir is a cache of Synology's file servers.
  for (const char* const known :
       {"__macosx", "@eadir", "thumbs.db", "desktop.ini", "$recycle.bin"}) {
    if (lower_case(name) == known) return true;
  }
  return false;
}

FolderImages images_below(const std::string& folder) {
  FolderImages found;
  for (std::filesystem::recursive_directory_iterator at(folder), end; at != end; ++at) {
    if (is_system_name(at->path().filename().string())) {
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
