// -off: what can be switched off, to see its effect or to isolate a problem.
#pragma once

#include "device/context.h"
#include "net/net.h"

namespace crema {

struct Switches {
  // Passes: see src/README.md.
  bool fuse = true, format = true, memory = true, overlap = true, recompute = true;
  bool resident = true;  // databases that fit are kept in GPU memory
  bool capture = true;   // training iterations are replayed as CUDA graphs
};

// Parses the flag; Error with the nearest name for an unknown one.
Switches switches_of_flag();

void set_passes(NetOptions* options);

}  // namespace crema
