#include "tools/replay/fork.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "base/error.h"
#include "solver/snapshot/snapshot.h"
#include "solver/solver.h"
#include "tools/replay/advance.h"
#include "tools/replay/replay.h"
#include "tools/replay/run_setting.h"

namespace crema {

namespace fs = std::filesystem;

std::optional<Fork> fork_of_flags(ForkFlags* flags) {
  const std::string& flag = flags->fork;
  if (flag.empty()) return std::nullopt;
  require(!flags->run.empty(), "-fork begins a run of its own: add -run DIR");
  require(flags->weights.empty() && (flags->snapshot.empty() || flags->snapshot == "auto"),
          "-fork ", flag, " brings its own weights: leave out -",
          flags->weights.empty() ? "snapshot" : "weights");
  const size_t at = flag.rfind('@');
  int64_t iteration = -1;
  if (at != std::string::npos) {
    const char* const end = flag.data() + flag.size();
    const auto read = std::from_chars(flag.data() + at + 1, end, iteration);
    require(read.ec == std::errc() && read.ptr == end && iteration >= 0, "-fork ", flag,
            ": expected DIR@N, the folder of a run and an iteration, such as runs/LeNet-1@4000");
  }
  Fork fork{RecordedRun(flag.substr(0, at)), iteration};
  const std::string& folder = fork.run.started_in();
  if (folder.empty() || folder == fs::current_path()) return fork;
  for (std::string* const path : {&flags->run, &flags->solver}) {
    if (!path->empty() && *path != "auto") *path = fs::absolute(*path);
  }
  fs::current_path(folder);
  return fork;
}

void require_one_rank(const std::optional<Fork>& fork) {
  require(
      !fork,
      "-fork works with one rank: start it on one GPU, and go on with several by -snapshot auto");
}

std::string write_fork(ProgramLog& log, const FlagValues& given, const Fork& fork,
                       const std::string& prefix) {
  const RecordedRun& run = fork.run;
  const RecordedRun::Start start =
      fork.iteration < 0 ? run.newest_state() : run.state_for(fork.iteration);
  const int64_t iteration = fork.iteration < 0 ? start.iteration : fork.iteration;
  FlagValues device;
  for (const char* name : {"gpu", "gpu_memory"}) {
    if (const auto value = given.find(name); value != given.end()) device.insert(*value);
  }
  const RunSetting setting = setting_of(log, device, run, "");
  for (const std::string& note : setting.notes) log.warning(note);
  const int64_t count = iteration - start.iteration;
  log.info(
      cat("Begins at iteration ", iteration, " of ", run.folder(),
          count == 0 ? "" : cat(", ", count, " behind its snapshot, which are computed again")));
  Replayed again{start, {}, RecordCheck(run.iterations(), start.iteration)};
  std::vector<std::string> names;
  setting.context->set_log(silent_log());
  SolverOptions options = setting.solver;
  options.records = true;
  options.snapshot = start.state;
  Advance advance;
  options.readers = {&again.check, &advance};
  Solver old(*setting.context, run.solver(prefix, std::max(start.iteration, iteration - 1)),
             options);
  for (const Parameter& parameter : old.net().parameters())
    names.push_back(cat(parameter.layer, "/", parameter.index));
  advance.to(old, iteration, run.rollbacks(start, iteration));
  old.snapshot();
  setting.context->set_log(log.library());
  if (again.check.first()) {
    log.warning(proof_of(again, names));
    for (const std::string& one : setting.differences()) log.warning(one);
  }
  return snapshot_files(old.parameter(), iteration).state;
}

}  // namespace crema
