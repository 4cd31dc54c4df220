// Writes a net as a person would: short messages on one line.
#pragma once

#include <string>

#include "proto/net.pb.h"

namespace crema {

std::string net_text(const NetParameter& net);

}  // namespace crema
