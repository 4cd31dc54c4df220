// The .solverstate file: Caffe's layout, binary or HDF5, with our own fields beside Caffe's.
#pragma once

#include <string>

#include "proto/solver.pb.h"

namespace crema {

// Binary when `hdf5` is false. Written atomically.
void write_solver_state(const SolverState& state, const std::string& path, bool hdf5);

// Detects the format from the content. Error, with the byte offset where it can be known, when the
// file is damaged, cut off or of another kind. Files of Caffe have none of our own fields.
SolverState read_solver_state(const std::string& path);

}  // namespace crema
