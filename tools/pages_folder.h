// The folder with README.md, models/ and the other pages.
#pragma once

#include <string>

namespace crema {

// share/crema of the installed program, or the source tree above the build. Error if there is neither, which
// ends with `instead`: what the user can do.
std::string pages_folder(const std::string& instead);

}  // namespace crema
