// -off: what can be switched off, to find out what it does or whether it is to blame.
#pragma once

#include "device/context.h"
#include "net/net.h"

namespace crema {

struct Switches {
  // Passes: see src/README.md.
  bool fuse = true, format = true, memory = true, overlap = true, recompute = true;
  bool resident = true;  // databases that fit lie in a GPU's memory
  bool capture = true;   // training iterations are repeated as CUDA graphs
};

// What the flag says; Error with the nearest name for one that is unknown.
Switches switches_of_flag();

void set_passes(NetOptions* options);

}  // namespace crema
