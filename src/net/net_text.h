// Writes a net, or another message, as a person would: short messages on one line.
#pragma once

#include <google/protobuf/message.h>

#include <string>

namespace crema {

std::string net_text(const google::protobuf::Message& net);

}  // namespace crema
