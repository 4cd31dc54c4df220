// The HDF5 side of a solver state: a dataset or a group for each field of SolverState, under its
// name.
#pragma once

#include <string>

#include "proto/solver.pb.h"

namespace crema {

void write_hdf5_state(const SolverState& state, const std::string& path);
// Error when it is not a solver state, or its checksum is missing or wrong.
SolverState read_hdf5_state(const std::string& path);

// Messages about a file, appended to its path.
inline constexpr const char* kWrongChecksum =
    ": this solver state is damaged: its content does not agree with its checksum; go on from an "
    "older snapshot";
inline constexpr const char* kNoChecksum =
    ": this solver state is damaged: its checksum is missing; go on from an older snapshot";

}  // namespace crema
