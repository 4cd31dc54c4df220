// run.json: what a training in a run folder was started with.
//   command, flags    as typed, and each flag that is not its default
//   folder, host, pid, started (UTC), version, built_with
//   net, device, seed
//   resumptions       the same of each later start in this folder, and the iteration it began with
#pragma once

#include <cstdint>
#include <string>

namespace crema {

// Writes run.json for a training that is about to be made.
void write_run_record(const std::string& path);

struct RunStartRecord {
  std::string net, device;
  uint64_t seed = 0;
  bool resumed = false;  // the folder held a run before
  int64_t iteration = 0;
};

// Adds what is known once the training has been made. Error when the file is damaged.
void complete_run_record(const std::string& path, const RunStartRecord& start);

}  // namespace crema
