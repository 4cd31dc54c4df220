// A solver and its nets as plain files: what includes, variables, -set and other flags made of them
// is written out, so that a training can be told and repeated from these files alone.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "net/prototxt/prototxt.h"

namespace crema {

struct ExpandedSolver {
  SolverParameter solver;  // names the nets as files of the folder
  // File names in the folder, and texts: train_val.prototxt, or train.prototxt, and a file for each
  // further test net.
  std::vector<std::pair<std::string, std::string>> nets;
};

// For files in `folder`. Paths stay those that work from today's working directory: what was found
// beside the solver or net is named by where it lies.
ExpandedSolver expanded_solver(const SolverFile& file, const std::string& folder);

// Error for a net from a pipe, whose text is gone once it has been read.
void require_net_files(const SolverFile& file);

// As a file has it.
std::string solver_text(const SolverParameter& solver);

}  // namespace crema
