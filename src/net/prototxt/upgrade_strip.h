// Keeps fields that only forks know out of files that we write.
#pragma once

#include <google/protobuf/message.h>

namespace crema {

// Fields and enum values from this number on may be read by name, but not written in binary.
constexpr int kFirstForkNumber = 6000;

// Clears every field with such a number and every enum field with such a value, at any depth.
// Call it before a message is written to a binary file.
void strip_fork_fields(google::protobuf::Message* message);

}  // namespace crema
