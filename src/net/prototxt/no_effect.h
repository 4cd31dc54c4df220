// Fields that exist only for other programs: the schema marks them (proto/options.proto), and
// setting one gives a warning.
#pragma once

#include <google/protobuf/message.h>

#include <string>
#include <vector>

#include "net/prototxt/upgrade.h"

namespace crema {

// A warning for each such field and enum value in `message`, with the position of its first use and
// the number of uses. Nets inside a solver are left to their own reader.
std::vector<Note> notes_without_effect(const google::protobuf::Message& message,
                                       const Locate& where);

}  // namespace crema
