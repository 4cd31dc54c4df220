// The .solverstate file: Caffe's layout, binary or HDF5, with our own fields beside Caffe's.
#pragma once

#include <string>

#include "proto/solver.pb.h"

namespace crema {

// Binary when `hdf5` is false. Appears whole or not at all.
void write_solver_state(const SolverState& state, const std::string& path, bool hdf5);

// Told by its content. Error, with the byte where it can be known, when the file is damaged or cut
// short, or is of another kind. Files of Caffe have none of our own fields.
SolverState read_solver_state(const std::string& path);

}  // namespace crema
