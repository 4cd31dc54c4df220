// run.lock: everything that the result of a run depends on, to compare it with another run, or with
// this machine.
//   net, solver, seed   hashes of what they say, without names of files
//   weights             a hash of the values that training starts from
//   data                each data set of the training net: kind, path, bytes, files, hash
//   program, libraries  versions
//   machine             host, processor, threads, device, GPU and its driver
//   flags, environment  those that decide how kernels round
//   resumed             the same of each later start in this folder, and the iteration it began with
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "device/context.h"
#include "net/prototxt/prototxt.h"
#include "solver/solver.h"
#include "tools/flags/flag_reader.h"

namespace crema {

using RunLock = nlohmann::ordered_json;

// program, libraries, machine, flags and environment: of a context that is there.
RunLock lock_of_program(const Context& context, Precision precision, const FlagValues& flags);
// net, solver and seed. `file`: that of a run folder.
RunLock lock_of_recipe(const SolverFile& file);
// `data` again, of the same data sets.
RunLock lock_of_data(const RunLock& recorded);

struct LockedStart {
  const FlagValues& flags;
  std::string folder;    // of the solver's file as the user gave it
  bool resumed = false;  // adds this start to the lock of the first
};

// Writes run.lock in a run folder that has its solver.prototxt. Data that cannot be read are recorded with
// the reason.
void write_run_lock(const std::string& folder, const LockedStart& locked, Solver& solver);

// None: there is no such file, or it is damaged.
std::optional<RunLock> read_run_lock(const std::string& path);
// The last start in it.
RunLock last_start(const RunLock& lock);

// `threads is 1 (was 2)`, `the data set data/train_lmdb has other content (was 9f..., is 3c...)`. Members
// that one of them lacks are not compared.
std::vector<std::string> lock_differences(const RunLock& was, const RunLock& is);

}  // namespace crema
