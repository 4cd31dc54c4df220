#include "solver/snapshot/snapshot.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"
#include "base/files.h"
#include "base/temporary.h"

namespace crema {

SnapshotFiles snapshot_files(const SolverParameter& solver, int64_t iteration) {
  const std::string start = cat(solver.snapshot_prefix(), "_iter_", iteration);
  const char* end = solver.snapshot_format() == SolverParameter::HDF5 ? ".h5" : "";
  return {cat(start, ".caffemodel", end), cat(start, ".solverstate", end),
          cat(start, "_ema.caffemodel", end)};
}

void check_kept_snapshots(const SolverFile& file) {
  const SolverParameter& solver = file.solver;
  const auto at_least_0 = [&](const char* field, auto value) {
    require(value >= 0, file.where(field), ": ", field, " is ", value, ", it must be at least 0");
  };
  at_least_0("keep_last", solver.keep_last());
  at_least_0("keep_every", solver.keep_every());
  at_least_0("snapshot_minutes", solver.snapshot_minutes());
  at_least_0("max_minutes", solver.max_minutes());
  require(solver.keep_every() == 0 || solver.keep_last() > 0, file.where("keep_every"),
          ": keep_every keeps snapshots in addition to the newest ones, but keep_last is 0, which "
          "keeps "
          "all: set keep_last, or remove keep_every");
}

void check_snapshot_parts(const SolverParameter& solver) {
  require(solver.snapshot_include_weights(),
          "snapshot_include_weights is false: without weights a snapshot is of no use, and a state "
          "cannot be resumed; to write weights only set snapshot_include_state: false");
}

void check_snapshot_folder(const SolverParameter& solver) {
  require(solver.has_snapshot_prefix(),
          "snapshots are to be written, but snapshot_prefix is missing in the solver: the folder "
          "and the start of their file names, for example snapshot_prefix: \"snapshots/lenet\"");
  const std::string probe = cat(solver.snapshot_prefix(), "_iter_0.tempfile"),
                    folder = folder_of(probe);
  try {
    const TemporaryEntry entry = make_temporary(probe, TemporaryEntry::Kind::file);
    unlink(entry.path.c_str());
    close(entry.descriptor);
  } catch (const Error& error) {
    fail("cannot write to snapshot_prefix \"", solver.snapshot_prefix(), "\": ", error.what(),
         folder_exists(folder)
             ? ""
             : cat("; the folder ", folder, " does not exist: make it, or change snapshot_prefix"));
  }
}

void check_snapshot_room(const SolverParameter& solver, uint64_t bytes) {
  const std::string folder = folder_of(solver.snapshot_prefix());
  struct statvfs disk;
  if (statvfs(folder.c_str(), &disk) != 0) {
    require(errno != ENOENT && errno != ENOTDIR, "the folder ", folder,
            " does not exist: make it, and the next snapshot will be written there");
    return;  // the write itself will report the error
  }
  if (disk.f_blocks == 0) return;
  // Some blocks are kept for root.
  const uint64_t room = (geteuid() == 0 ? disk.f_bfree : disk.f_bavail) * disk.f_frsize;
  require(room >= bytes, "its files need ", size_text(bytes), ", but ", folder,
          " has room for only ", size_text(room),
          ": make room there (keep_last: 2 in the solver keeps only the newest two "
          "snapshots), and the next one will be written");
}

std::string find_solver_state(const std::string& path) {
  for (const std::string end : {"", ".h5"}) {
    const std::string weights = ".caffemodel" + end;
    if (!ends_with(path, weights)) continue;
    const std::string state = path.substr(0, path.size() - weights.size()) + ".solverstate" + end;
    require(file_exists(state), path, ": these are weights, not a solver state, and ", state,
            " is not there. To start a new run from weights use -weights");
    return state;
  }
  return path;
}

std::string find_snapshot_weights(const SolverState& state, const std::string& state_path) {
  const std::string& named = state.learned_net();
  std::vector<std::string> tried;
  if (!named.empty()) {
    tried.push_back(named);
    tried.push_back(cat(folder_of(state_path), "/", named.substr(named.rfind('/') + 1)));
  }
  const size_t end = state_path.rfind(".solverstate");
  if (end != std::string::npos)
    tried.push_back(state_path.substr(0, end) + ".caffemodel" + state_path.substr(end + 12));
  if (tried.size() > 2 && tried[2] == tried[1]) tried.pop_back();
  for (const std::string& path : tried)
    if (file_exists(path)) return path;
  fail(state_path, ": its weights are missing: ",
       named.empty() ? "it names none (learned_net), and " : "neither ",
       join(tried, named.empty() ? " or " : " nor "),
       named.empty() ? (tried.empty() ? "there are none in its folder" : " does not exist")
                     : " exists",
       ". A training cannot go on without them: put them there, or start a new run from weights "
       "with -weights");
}

}  // namespace crema
