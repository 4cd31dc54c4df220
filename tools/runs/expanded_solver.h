// A solver and its nets as plain files: with includes, variables, -set and other flags written out,
// so that these files alone describe and repeat a run.
#pragma once

#include <set>
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

// For files in `folder`. Paths stay valid from the current working directory: files found next to
// the solver or net get their location.
ExpandedSolver expanded_solver(const SolverFile& file, const std::string& folder);

// Error for a net from a pipe, whose text is gone once it has been read.
void require_net_files(const SolverFile& file);

// Names of the layers' fields that name a file or folder to read, which is also looked up next to the net.
const std::set<std::string>& path_fields();

// As a file has it.
std::string solver_text(const SolverParameter& solver);

}  // namespace crema
