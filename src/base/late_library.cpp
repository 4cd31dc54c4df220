#include "base/late_library.h"

#include <dlfcn.h>

#include "base/error.h"
#include "base/files.h"

namespace crema {

void* LateLibrary::symbol(const char* name) {
  const std::lock_guard lock(mutex_);
  if (handle_ == nullptr) {
    // By its full path: a search would depend on who intercepts dlopen.
    static const char here = 0;
    Dl_info self{};
    dladdr(&here, &self);
    const std::string path = cat(folder_of(self.dli_fname), "/", file_);
    handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ == nullptr) throw FileError(cat(path, ": cannot be loaded: ", dlerror()));
  }
  void* const found = dlsym(handle_, name);
  if (found == nullptr) throw FileError(cat(file_, ": has no ", name, ": ", dlerror()));
  return found;
}

}  // namespace crema
