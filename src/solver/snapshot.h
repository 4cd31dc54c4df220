// Snapshots: which files they consist of, and how they are found again.
#pragma once

#include <string>

#include "net/net.h"
#include "proto/solver.pb.h"

namespace crema {

struct SnapshotFiles {
  std::string weights, state;
  std::string average;  // of the weights, if one is kept
};

// PREFIX_iter_N.caffemodel, PREFIX_iter_N.solverstate and PREFIX_iter_N_ema.caffemodel, each
// followed by .h5 for HDF5.
SnapshotFiles snapshot_files(const SolverParameter& solver, int64_t iteration);

// Error when a snapshot would leave out its weights but not its state, or everything.
void check_snapshot_parts(const SolverParameter& solver);

// Writes and removes PREFIX_iter_0.tempfile, as Caffe does. Error says why snapshots cannot be
// written there.
void check_snapshot_folder(const SolverParameter& solver);

// The state file that -snapshot names: the file itself, or the one beside it when the weights of a
// snapshot are given.
std::string find_solver_state(const std::string& path);
// The weights that belong to a state: at the path it gives, else under the same file name beside
// it.
std::string find_snapshot_weights(const std::string& learned_net, const std::string& state_path);

}  // namespace crema
