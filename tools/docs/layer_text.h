// What the opening comment of a layer's file says.
#pragma once

#include <string>

namespace crema {

// "" for a type without one, such as a layer of one's own.
std::string documentation_of(const std::string& type);

}  // namespace crema
