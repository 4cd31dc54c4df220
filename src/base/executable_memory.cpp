#include "base/executable_memory.h"

#include <sys/mman.h>
#include <unistd.h>

namespace crema {

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
