#include "device/processors.h"

#include <sched.h>

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

int processors_of_mask() {
  cpu_set_t mask;
  // A machine of more processors than the mask holds: then there is no mask to mind.
  if (sched_getaffinity(0, sizeof mask, &mask) == 0) return CPU_COUNT(&mask);
  return static_cast<int>(std::thread::hardware_concurrency());
}

std::string content(const std::string& path) { return file_exists(path) ? read_file(path) : ""; }

// The time per period of the group in this folder, in processors.
double granted(const std::string& folder) {
  std::istringstream numbers(content(folder + "/cpu.max") + " " +
                             content(folder + "/cpu.cfs_quota_us") + " " +
                             content(folder + "/cpu.cfs_period_us"));
  // "max" and -1 stand for no limit.
  double quota = 0, period = 0;
  return numbers >> quota >> period && quota > 0 && period > 0 ? quota / period : kNoLimit;
}

// The least that the group or one that it is part of grants. Inside of a container the path may be
// one of the host, and the group's own files lie at the top.
double granted_along(const std::string& top, std::string path) {
  double least = kNoLimit;
  while (true) {
    least = std::min(least, granted(top + path));
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos) return least;
    path.resize(slash);
  }
}

double granted_by_groups(const std::string& root) {
  double least = kNoLimit;
  for (const std::string& line : split(content(root + "/proc/self/cgroup"), '\n')) {
    // ID:CONTROLLERS:PATH; version 2 names no controllers.
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::vector<std::string> names = split(controllers, ',');
    if (!names.empty() && std::find(names.begin(), names.end(), "cpu") == names.end()) continue;
    for (const std::string& mounted : {controllers, std::string(names.empty() ? "unified" : "cpu")})
      least = std::min(least,
                       granted_along(root + "/sys/fs/cgroup/" + mounted, line.substr(second + 1)));
  }
  return least;
}

}  // namespace

int usable_processors(const std::string& root) {
  const double allowed = std::min<double>(processors_of_mask(), granted_by_groups(root));
  return std::max(1, static_cast<int>(std::ceil(allowed)));
}

}  // namespace crema
