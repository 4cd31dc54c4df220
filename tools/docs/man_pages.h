// Man pages of the program and its verbs.
#pragma once

#include <map>
#include <string>

namespace crema {

// By file name: "crema.1", "crema-train.1".
std::map<std::string, std::string> man_pages();

}  // namespace crema
