#include "base/system.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

namespace crema {

std::string host_name() {
  char name[256] = {};
  if (gethostname(name, sizeof name - 1) != 0 || !*name) return "localhost";
  return name;
}

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

std::string user_cache_folder() {
  const std::string cache = environment("XDG_CACHE_HOME"), home = environment("HOME");
  if (!cache.empty()) return cache + "/crema";
  return home.empty() ? "" : home + "/.cache/crema";
}

bool may_generate_code() {
  static const bool may = [] {
    const auto size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    void* const page =
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return false;
    const bool allowed = mprotect(page, size, PROT_READ | PROT_EXEC) == 0;
    munmap(page, size);
    return allowed;
  }();
  return may;
}

bool has_room_for_code(size_t bytes) {
  void* const room =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) return false;
  munmap(room, bytes);
  return true;
}

}  // namespace crema
