// The flags of a verb with what help says about them.
#pragma once

#include <string>
#include <vector>

#include "tools/verb.h"

namespace crema {

struct VerbFlag {
  std::string name, type, initial, meaning;  // initial: "" for an empty default, too
};

// In the order of -help, -quiet and -layers last, which all verbs take.
std::vector<VerbFlag> flags_of(const Verb& verb);

}  // namespace crema
