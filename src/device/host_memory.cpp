#include "device/host_memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <limits>
#include <sstream>

#include "base/files.h"

namespace crema {
namespace {

constexpr size_t kUnlimited = std::numeric_limits<size_t>::max();

// The number after `name` in the file, or the first one; kUnlimited if there is none.
size_t number_after(const std::string& path, const std::string& name) {
  std::string text;
  try {
    if (!file_exists(path)) return kUnlimited;
    text = read_file(path);
  } catch (const FileError&) {  // a control group that this process may not look at
    return kUnlimited;
  }
  const size_t at = text.find(name);
  if (at == std::string::npos) return kUnlimited;
  std::istringstream rest(text.substr(at + name.size()));
  size_t number = 0;
  return rest >> number ? number : kUnlimited;
}

// Memory that a control group at `folder` leaves, in either version's files.
size_t left_by_group(const std::string& folder, const char* limit, const char* used) {
  const size_t most = number_after(folder + limit, ""), now = number_after(folder + used, "");
  if (most == kUnlimited || now == kUnlimited) return kUnlimited;
  return most > now ? most - now : 0;
}

}  // namespace

size_t free_host_memory() {
  const size_t kibibytes = number_after("/proc/meminfo", "MemAvailable:");
  size_t bytes = kibibytes == kUnlimited ? kUnlimited : kibibytes * 1024;
  bytes = std::min(bytes, left_by_group("/sys/fs/cgroup", "/memory.max", "/memory.current"));
  bytes = std::min(bytes, left_by_group("/sys/fs/cgroup/memory", "/memory.limit_in_bytes",
                                        "/memory.usage_in_bytes"));
  rlimit limit{};
  const size_t mapped = number_after("/proc/self/status", "VmSize:");
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && mapped != kUnlimited)
    bytes = std::min(bytes, limit.rlim_cur - std::min<size_t>(limit.rlim_cur, mapped * 1024));
  return bytes;
}

}  // namespace crema
