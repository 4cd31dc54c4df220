// Fields that files hold for other programs' sake: the schema marks them (proto/options.proto), and
// whoever sets one is told.
#pragma once

#include <google/protobuf/message.h>

#include <string>
#include <vector>

#include "net/prototxt/upgrade.h"

namespace crema {

// A warning for each such field and enum value in `message`, with the place of the first and how
// many there are. Nets inside a solver are left to who reads them.
std::vector<Note> notes_without_effect(const google::protobuf::Message& message,
                                       const Locate& where);

}  // namespace crema
