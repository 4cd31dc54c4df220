#include "tools/memory_use.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>

#include "base/files.h"

namespace crema {

namespace {

size_t largest_resident_set() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<size_t>(usage.ru_maxrss) * 1024;
}

const size_t at_start = largest_resident_set();

constexpr size_t no_limit = std::numeric_limits<size_t>::max();

// The number after `name` in the file, or the first one; no_limit where there is none.
size_t number_after(const std::string& path, const std::string& name) {
  if (!file_exists(path)) return no_limit;
  const std::string text = read_file(path);
  const size_t at = text.find(name);
  if (at == std::string::npos) return no_limit;
  std::istringstream rest(text.substr(at + name.size()));
  size_t number = 0;
  return rest >> number ? number : no_limit;
}

// What a control group at `folder` leaves, in either version's files.
size_t left_by_group(const std::string& folder, const char* limit, const char* used) {
  const size_t most = number_after(folder + limit, ""), now = number_after(folder + used, "");
  if (most == no_limit || now == no_limit) return no_limit;
  return most > now ? most - now : 0;
}

}  // namespace

size_t growth_of_resident_set() {
  const size_t now = largest_resident_set();
  return now > at_start ? now - at_start : 0;
}

size_t resident_set() {
  std::ifstream pages("/proc/self/statm");
  size_t all = 0, resident = 0;
  pages >> all >> resident;
  return pages ? resident * static_cast<size_t>(sysconf(_SC_PAGESIZE)) : 0;
}

size_t available_memory() {
  const size_t kibibytes = number_after("/proc/meminfo", "MemAvailable:");
  size_t bytes = kibibytes == no_limit ? no_limit : kibibytes * 1024;
  bytes = std::min(bytes, left_by_group("/sys/fs/cgroup", "/memory.max", "/memory.current"));
  bytes = std::min(bytes, left_by_group("/sys/fs/cgroup/memory", "/memory.limit_in_bytes",
                                        "/memory.usage_in_bytes"));
  rlimit limit{};
  const size_t mapped = number_after("/proc/self/status", "VmSize:");
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && mapped != no_limit)
    bytes = std::min(bytes, limit.rlim_cur - std::min<size_t>(limit.rlim_cur, mapped * 1024));
  return bytes / 5 * 4;
}

}  // namespace crema
