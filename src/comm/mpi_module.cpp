#include "comm/mpi_module.h"

#include <dlfcn.h>

#include "base/error.h"
#include "base/files.h"

namespace crema {

#ifdef CREMA_MPI

std::unique_ptr<MpiModule> load_mpi() {
  // In this library's folder, by its full path, as data/images does it.
  Dl_info self{};
  dladdr(reinterpret_cast<void*>(&load_mpi), &self);
  const std::string path = cat(folder_of(self.dli_fname), "/libcrema_mpi.so");
  // Global: MPI loads parts of itself that look for its library's functions.
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!library) {
    fail("an MPI launcher has started this program, but its part for MPI cannot be loaded: ",
         dlerror(), "; install the MPI library that it was built with (Debian's libopenmpi3)");
  }
  using Entry = MpiModule* (*)();
  return std::unique_ptr<MpiModule>(reinterpret_cast<Entry>(dlsym(library, "crema_mpi_module"))());
}

#else

std::unique_ptr<MpiModule> load_mpi() {
  fail(
      "an MPI launcher has started this program, which was built without MPI: install it (Debian's "
      "libopenmpi-dev, or `bash data_scripts/setup.sh`) and configure and build again");
}

#endif

}  // namespace crema
