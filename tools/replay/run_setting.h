// RunSetting: the device, the precision and the passes with which a recorded run is computed again.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "solver/solver.h"
#include "tools/flags/flags_of.h"
#include "tools/replay/recorded_run.h"
#include "tools/verb.h"

namespace crema {

struct RunSetting {
  const RecordedRun& run;
  std::string folder;  // for files that do not stay
  std::unique_ptr<Context> context;
  SolverOptions solver;            // precision and passes
  bool repeatable = false;         // on a CPU, or with -deterministic
  std::vector<std::string> notes;  // what cannot be as in the run
  FlagValues flags;                // of the run and the command

  // The notes, and what the data, this machine and this program have that the run had not. Enters the
  // folder of the run.
  std::vector<std::string> differences() const;
};

using RunSettingFlags = FlagsOf<"gpu", "precision", "deterministic", "implementation", "gpu_memory",
                                "tune", "off", "recompute">;

// As the run's own flags say, and those of the command itself, which take precedence. The run must outlive it.
// `folder`: of a WorkFolder, for files that do not stay.
RunSetting setting_of(const VerbCall& call, const RecordedRun& run, const std::string& folder);
RunSetting setting_of(ProgramLog& log, const FlagValues& given, const RecordedRun& run,
                      const std::string& folder);

// The flags that the command itself names.
FlagValues given_flags(const VerbCall& call);

// Relative paths of a run count from where it was started: call it before the nets are made, and make paths of one's
// own absolute before.
void enter_folder_of(const RecordedRun& run);

}  // namespace crema
