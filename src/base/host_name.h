// The name of this machine.
#pragma once

#include <string>

namespace crema {

// "localhost" if it has none.
std::string host_name();

}  // namespace crema
