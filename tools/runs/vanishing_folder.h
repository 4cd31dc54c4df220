// VanishingFolder: a new folder for temporary files, which goes with this object.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/error.h"

namespace crema {

class VanishingFolder {
 public:
  // In $TMPDIR, or /tmp; `name` begins its name.
  explicit VanishingFolder(const std::string& name) {
    path_ = (std::filesystem::temp_directory_path() / (name + "_XXXXXX")).string();
    require(mkdtemp(path_.data()) != nullptr, path_,
            ": cannot make this folder; set TMPDIR to another one");
  }
  ~VanishingFolder() {
    std::error_code none;
    std::filesystem::remove_all(path_, none);
  }
  VanishingFolder(const VanishingFolder&) = delete;
  VanishingFolder& operator=(const VanishingFolder&) = delete;

  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace crema
