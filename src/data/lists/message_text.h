// Reads a protobuf message from its text, and prints nothing.
#pragma once

#include <google/protobuf/message.h>

#include <string>

namespace crema {

enum class UnknownFields { are_errors, are_ignored };

// The first error, as "LINE:COLUMN: what"; empty if there is none.
std::string parse_message(const std::string& text, google::protobuf::Message* message,
                          UnknownFields unknown = UnknownFields::are_errors);

}  // namespace crema
