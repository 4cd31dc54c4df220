#include "device/host_limits.h"

#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>
#include <thread>

#include "base/files.h"
#include "base/strings.h"

namespace crema {

namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();
constexpr size_t kUnlimited = std::numeric_limits<size_t>::max();

int processors_of_mask() {
  cpu_set_t mask;
  // Fails if the machine has more processors than the mask has bits: then there is no mask to
  // respect.
  if (sched_getaffinity(0, sizeof mask, &mask) == 0) return CPU_COUNT(&mask);
  return static_cast<int>(std::thread::hardware_concurrency());
}

// Empty for a file that is absent or that this process may not read.
std::string content(const std::string& path) {
  try {
    return file_exists(path) ? read_file(path) : "";
  } catch (const FileError&) {
    return "";
  }
}

// The CPU quota of the control group in this folder, in processors.
double granted(const std::string& folder) {
  std::istringstream numbers(content(folder + "/cpu.max") + " " +
                             content(folder + "/cpu.cfs_quota_us") + " " +
                             content(folder + "/cpu.cfs_period_us"));
  // "max" and -1 mean no limit.
  double quota = 0, period = 0;
  return numbers >> quota >> period && quota > 0 && period > 0 ? quota / period : kNoLimit;
}

// The lowest quota of the group and its ancestors. Inside a container the path may be one of the
// host, and the files of the container's own group are then at the top.
double granted_along(const std::string& top, std::string path) {
  double minimum = kNoLimit;
  while (true) {
    minimum = std::min(minimum, granted(top + path));
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos) return minimum;
    path.resize(slash);
  }
}

double granted_by_groups(const std::string& root) {
  double minimum = kNoLimit;
  for (const std::string& line : split(content(root + "/proc/self/cgroup"), '\n')) {
    // ID:CONTROLLERS:PATH; version 2 lists no controllers.
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::vector<std::string> names = split(controllers, ',');
    if (!names.empty() && std::find(names.begin(), names.end(), "cpu") == names.end()) continue;
    for (const std::string& mounted : {controllers, std::string(names.empty() ? "unified" : "cpu")})
      minimum = std::min(
          minimum, granted_along(root + "/sys/fs/cgroup/" + mounted, line.substr(second + 1)));
  }
  return minimum;
}

// The number after `name` in the file, or the first one; kUnlimited where there is none.
size_t number_after(const std::string& path, const std::string& name) {
  const std::string text = content(path);
  const size_t at = text.find(name);
  if (at == std::string::npos) return kUnlimited;
  std::istringstream rest(text.substr(at + name.size()));
  size_t number = 0;
  return rest >> number ? number : kUnlimited;
}

// What a control group at `folder` leaves, in either version's files.
size_t left_by_group(const std::string& folder, const char* limit, const char* used) {
  const size_t most = number_after(folder + limit, ""), now = number_after(folder + used, "");
  if (most == kUnlimited || now == kUnlimited) return kUnlimited;
  return most > now ? most - now : 0;
}

}  // namespace

int usable_processors(const std::string& root) {
  const double allowed = std::min<double>(processors_of_mask(), granted_by_groups(root));
  return std::max(1, static_cast<int>(std::ceil(allowed)));
}

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
