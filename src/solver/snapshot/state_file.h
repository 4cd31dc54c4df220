// The .solverstate file: Caffe's layout, binary or HDF5, with our own fields in addition to Caffe's.
#pragma once

#include <string>

#include "net/weights/wire_writer.h"
#include "proto/solver.pb.h"

namespace crema {

// Binary when `hdf5` is false. Written atomically.
void write_solver_state(const SolverState& state, const std::string& path, bool hdf5);
// A SolverState without a checksum, in a binary file. `context`: that of its blobs.
void write_solver_state(Context& context, const WireMessage& state, const std::string& path);

// Detects the format from the content. Error, with the byte offset where it can be known, when the
// file is damaged, cut off or of another kind. Files of Caffe have none of our own fields.
SolverState read_solver_state(const std::string& path);

}  // namespace crema
