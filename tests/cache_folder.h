// The user's cache folder, while it lives.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

#include "support.h"

namespace crema::tests {

class CacheFolder : public Folder {
 public:
  CacheFolder() {
    if (const char* const before = std::getenv("XDG_CACHE_HOME")) before_ = before;
    setenv("XDG_CACHE_HOME", path().c_str(), 1);
  }
  ~CacheFolder() {
    if (before_) {
      setenv("XDG_CACHE_HOME", before_->c_str(), 1);
    } else {
      unsetenv("XDG_CACHE_HOME");
    }
  }

 private:
  std::optional<std::string> before_;
};

}  // namespace crema::tests
