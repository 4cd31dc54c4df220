#include "base/host_name.h"

#include <unistd.h>

namespace crema {

std::string host_name() {
  char name[256] = {};
  if (gethostname(name, sizeof name - 1) != 0 || !*name) return "localhost";
  return name;
}

}  // namespace crema
