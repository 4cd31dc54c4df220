// Reads a message from text without a word: a page shows what can be read.
#pragma once

#include <google/protobuf/message.h>

#include <string>

namespace crema {

// False if the text is not such a message.
bool quiet_parse(const std::string& text, google::protobuf::Message* message);

}  // namespace crema
