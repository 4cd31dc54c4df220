#include "tools/project/split_folders.h"

#include <array>

#include "base/files.h"
#include "base/strings.h"

namespace crema {

SplitFolders split_folders(const std::string& folder) {
  constexpr std::array<const char*, 2> training = {"train", "training"};
  constexpr std::array<const char*, 4> testing = {"val", "valid", "validation", "test"};
  SplitFolders found;
  size_t best = testing.size();
  for (const std::string& name : list_folder(folder)) {
    if (!folder_exists(folder + "/" + name)) continue;
    const std::string plain = lower_case(name);
    for (const char* known : training) {
      if (plain == known) found.training = name;
    }
    for (size_t i = 0; i < testing.size(); ++i) {
      if (plain != testing[i]) continue;
      found.unused = i < best ? found.testing : name;
      if (i < best) found.testing = name, best = i;
    }
  }
  if (found.training.empty() || found.testing.empty()) return {};
  return found;
}

std::string folder_named(const std::string& folder, const std::vector<std::string>& names) {
  for (const std::string& wanted : names) {
    for (const std::string& name : list_folder(folder)) {
      if (lower_case(name) == wanted && folder_exists(folder + "/" + name))
        return folder + "/" + name;
    }
  }
  return "";
}

}  // namespace crema
