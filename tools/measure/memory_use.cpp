#include "tools/measure/memory_use.h"

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

#include "device/host_limits.h"

namespace crema {

namespace {

size_t largest_resident_set() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<size_t>(usage.ru_maxrss) * 1024;
}

const size_t at_start = largest_resident_set();

}  // namespace

size_t growth_of_resident_set() {
  const size_t now = largest_resident_set();
  return now > at_start ? now - at_start : 0;
}

void forget_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

size_t resident_set() {
  std::ifstream pages("/proc/self/statm");
  size_t all = 0, resident = 0;
  pages >> all >> resident;
  return pages ? resident * static_cast<size_t>(sysconf(_SC_PAGESIZE)) : 0;
}

size_t available_memory() { return free_host_memory() / 5 * 4; }

}  // namespace crema
