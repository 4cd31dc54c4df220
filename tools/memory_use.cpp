#include "tools/memory_use.h"

#include <sys/resource.h>

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

}  // namespace crema
