// Runs written C files with random inputs, and compares their results with those of the net.
#pragma once

#include <string>

#include "exchange/c/export.h"
#include "net/net.h"
#include "tools/exchange/verification.h"

namespace crema {

struct CheckedC {
  const CProgram& program;
  bool weights_file = false;
  std::string source, weights;  // paths; the header is in the source's folder
};

// Compiles the files with $CC, or cc, and runs them. `problem` with an empty `runtime`: there is no
// compiler. Error if they cannot be compiled or run. Changes the net's inputs.
Verification verify_c(Net& net, const CheckedC& checked, int draws);

}  // namespace crema
