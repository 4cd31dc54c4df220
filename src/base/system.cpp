#include "base/system.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

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

size_t last_cache_bytes() {
  static const size_t found = [] {
    // sysconf() adds up the caches of all groups of cores on some machines.
    std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index3/size");
    size_t number = 0;
    char unit = 0;
    if (!(file >> number >> unit) || number == 0) return size_t{16} << 20;
    return number << (unit == 'M' ? 20 : unit == 'K' ? 10 : 0);
  }();
  return found;
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
