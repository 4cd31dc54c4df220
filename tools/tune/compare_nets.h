// Compares one pass of a net under two sets of flags.
#pragma once

#include <string>
#include <vector>

#include "tools/console/program_log.h"
#include "tools/flags/flags_of.h"

namespace crema {

// The results of a net for one batch: its loss, the tops of each step, the gradients of its
// parameters.
struct NetPass {
  double rounding = 0;  // relative differences up to this are those of the precision
  double loss = 0;
  struct Blob {
    std::string layer, name;  // the last layer of the step, and its top; or "parameter 0"
    std::vector<float> values;
  };
  std::vector<Blob> tops;       // in the order of forward
  std::vector<Blob> gradients;  // in the order of the layers
  std::vector<std::vector<float>> parameters;
};

// In the order of -help.
using CompareFlags = FlagsOf<"with", "model", "weights", "weights_mode", "phase", "level", "stage",
                             "assume", "batch", "gpu", "implementation", "off", "precision", "tune",
                             "deterministic", "gpu_memory", "set">;

// Makes the net of `flags`, gives it `parameters` unless they are empty, and runs
// one forward and, in phase TRAIN, one backward pass.
NetPass run_pass(ProgramLog& log, const CompareFlags& flags,
                 const std::vector<std::vector<float>>& parameters);

// Prints both, layer by layer, and which layer is the first that differs, and the first beyond
// rounding. `with`: the value of -with, for errors.
void print_differences(const NetPass& a, const NetPass& b, const std::string& with);

}  // namespace crema
