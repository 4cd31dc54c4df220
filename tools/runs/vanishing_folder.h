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
    const char* const chosen = std::getenv("TMPDIR");
    const std::string parent = chosen && *chosen ? chosen : "/tmp";
    path_ = std::filesystem::absolute(parent + "/" + name + "_XXXXXX").string();
    require(mkdtemp(path_.data()) != nullptr, parent,
            ": cannot make a temporary folder in it; set TMPDIR to a folder that can be written");
  }
  ~VanishingFolder() { remove(path_); }
  VanishingFolder(const VanishingFolder&) = delete;
  VanishingFolder& operator=(const VanishingFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

  // Before it goes, while others may still write there: out of their way first.
  void remove_now() const {
    const std::string gone = path_ + ".gone";
    std::error_code none;
    std::filesystem::rename(path_, gone, none);
    remove(gone);
    remove(path_);
  }

 private:
  static void remove(const std::string& path) {
    std::error_code none;
    std::filesystem::remove_all(path, none);
  }

  std::string path_;
};

}  // namespace crema
