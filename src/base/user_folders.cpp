#include "base/user_folders.h"

#include <cstdlib>

namespace crema {

std::string user_cache_folder() {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  if (cache && *cache) return std::string(cache) + "/crema";
  const char* const home = std::getenv("HOME");
  return home && *home ? std::string(home) + "/.cache/crema" : "";
}

}  // namespace crema
