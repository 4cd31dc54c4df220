// Folders of the user who runs this process.
#pragma once

#include <string>

namespace crema {

// $XDG_CACHE_HOME/crema, else ~/.cache/crema; "" if the environment has no home folder. It need not
// exist.
std::string user_cache_folder();

}  // namespace crema
