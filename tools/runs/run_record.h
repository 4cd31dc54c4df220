// run.json: how a run in a run folder was started.
//   command, flags    as typed, and each flag that is not its default
//   folder, host, pid, started (UTC), version, built_with
//   net, device, seed, and if there are several, ranks
//   resumptions       the same of each later start in this folder, and the iteration it began with
#pragma once

#include <cstdint>
#include <string>

#include "tools/flags/flag_reader.h"

namespace crema {

// Writes run.json for a run that is about to be created with these flags.
void write_run_record(const std::string& path, const FlagValues& flags);

struct RunStartRecord {
  std::string net, device;
  uint64_t seed = 0;
  int ranks = 1;
  bool resumed = false;  // the folder held a run before
  int64_t iteration = 0;
};

// Adds the data that are known once the run has been created. Error if the file is damaged.
void complete_run_record(const std::string& path, const FlagValues& flags,
                         const RunStartRecord& start);

}  // namespace crema
