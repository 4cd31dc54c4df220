// Snapshots: which files they consist of, and how they are found again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "net/net.h"
#include "net/prototxt/prototxt.h"
#include "proto/solver.pb.h"

namespace crema {

struct SnapshotFiles {
  std::string weights, state;
  std::string average;  // of the weights, if one is kept
};

// PREFIX_iter_N.caffemodel, PREFIX_iter_N.solverstate and PREFIX_iter_N_ema.caffemodel, each
// followed by .h5 for HDF5.
SnapshotFiles snapshot_files(const SolverParameter& solver, int64_t iteration);

// Error for values of keep_last, keep_every and the like that make no sense.
void check_kept_snapshots(const SolverFile& file);

// Error when a snapshot would leave out its weights but not its state, or everything.
void check_snapshot_parts(const SolverParameter& solver);

// Writes and removes PREFIX_iter_0.tempfile, as Caffe does. Error says why snapshots cannot be
// written there.
void check_snapshot_folder(const SolverParameter& solver);

// Error when the folder has less room than `bytes`, or is gone. Where the file system does not say how
// much room there is, it has enough.
void check_snapshot_room(const SolverParameter& solver, uint64_t bytes);

// The state file that -snapshot names: the file itself, or the one next to it when the weights of a
// snapshot are given.
std::string find_solver_state(const std::string& path);
// The state files of the snapshots PREFIX_iter_N, the newest first; none where there are none. States
// that are damaged or without weights are passed over with a warning; whether weights are whole
// shows when they are restored. Error without a snapshot_prefix, or when all are damaged.
std::vector<std::string> newest_snapshots(const SolverParameter& solver, Log& log);
// The N of PREFIX_iter_N.solverstate[.h5]; below 0: the file has another name.
int64_t iteration_of_state(const std::string& path);
// The weights that belong to a state: at the path it gives, else under the same file name next to it,
// else next to it under its own name, NAME.caffemodel for NAME.solverstate. Error where there are none.
std::string find_snapshot_weights(const SolverState& state, const std::string& state_path);

}  // namespace crema
