// -fork: a run that begins where another one was at some iteration.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tools/console/program_log.h"
#include "tools/flags/flags_of.h"
#include "tools/replay/recorded_run.h"

namespace crema {

struct Fork {
  RecordedRun run;
  int64_t iteration;  // updates done; below 0: its newest snapshot
};

using ForkFlags = FlagsOf<"fork", "run", "solver", "snapshot", "weights">;

// -fork DIR@N, or DIR for the newest snapshot; none without the flag. From here on relative paths count from where that
// run was started; those in the flags become absolute if that is another folder.
std::optional<Fork> fork_of_flags(ForkFlags* flags);

// Error for several ranks.
void require_one_rank(const std::optional<Fork>& fork);

// Writes the run's state there as a snapshot under this prefix, and returns the state file. Where it has no snapshot, the
// iterations from the one before are computed again, with the run's own flags but for -gpu of `given`; a warning
// says if that does not give the run's bits.
std::string write_fork(ProgramLog& log, const FlagValues& given, const Fork& fork,
                       const std::string& prefix);

}  // namespace crema
