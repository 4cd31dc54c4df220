#include "tools/pages_folder.h"

#include <filesystem>

#include "base/error.h"
#include "base/files.h"

namespace crema {

std::string pages_folder(const std::string& instead) {
  namespace fs = std::filesystem;
  std::error_code problem;
  const fs::path program = fs::read_symlink("/proc/self/exe", problem).parent_path();
  // A build may be in build/ or in build/release/.
  for (const char* place : {"../share/crema", "../..", "../../.."}) {
    const std::string folder = (program / place).lexically_normal().string();
    if (!problem && file_exists(folder + "/README.md") && folder_exists(folder + "/models"))
      return folder;
  }
  fail("Crema's models and pages are not next to the program; ", instead);
}

}  // namespace crema
