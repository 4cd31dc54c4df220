// `crema reproduce DIR`: runs a recorded run again and says whether it is the same, bit for bit.
#include <filesystem>

#include "solver/events/run_identity.h"
#include "solver/replay/record_check.h"
#include "solver/solver.h"
#include "tools/replay/advance.h"
#include "tools/replay/replay.h"
#include "tools/replay/run_setting.h"
#include "tools/replay/work_folder.h"
#include "tools/verb.h"

namespace crema {

namespace {

using ReproduceFlags = FlagsOf<"iterations", "gpu", "precision", "deterministic", "implementation",
                               "gpu_memory", "tune", "off", "recompute">;

constexpr int64_t kPiece = 100;  // iterations between two looks at what was found

int run_reproduce(const VerbCall& call, const ReproduceFlags& flags) {
  ProgramLog& log = call.log;
  const RecordedRun run(call.arguments[0]);
  const WorkFolder folder("crema_reproduce");
  enter_folder_of(run);
  const RunSetting setting = setting_of(call, run, folder.path());
  run.start_for(run.iterations().end() - 1);  // says why there are none
  const int64_t first = run.iterations().first;
  // A run that began where another was.
  const RecordedRun::Start start = first == 0 ? RecordedRun::Start() : run.state_for(first);
  require(call.given.count("iterations") == 0 || flags.iterations > 0, "-iterations ",
          flags.iterations, ": expected a number above 0");
  const int64_t wanted = call.given.count("iterations") > 0
                             ? std::min<int64_t>(first + flags.iterations, run.iterations().end())
                             : run.iterations().end();
  // A resume with another solver.
  const RecordedRun::Change change = run.next_change(first);
  const int64_t end = std::min(wanted, change.iteration);
  for (const std::string& note : setting.notes) log.warning(note);
  for (const std::string& changed : run.data_differences()) log.warning(changed);
  if (end < wanted)
    log.warning(cat("The run was resumed in iteration ", change.iteration, ", from where on ",
                    join(change.fields, "; "), ": only the iterations before are computed again"));
  log.info(cat("From the start of the run: ", end - first, " iterations"));

  Replayed again{start, {}, RecordCheck(run.iterations(), first)};
  std::vector<std::string> names;
  setting.context->set_log(silent_log());
  {
    SolverOptions options = setting.solver;
    options.records = true;
    options.snapshot = start.state;
    Advance advance;
    options.readers = {&again.check, &advance};
    Solver solver(*setting.context, run.solver(folder.path() + "/again", first), options);
    for (const Parameter& parameter : solver.net().parameters())
      names.push_back(cat(parameter.layer, "/", parameter.index));
    const std::string weights = run.weights_difference(hash_of_weights(solver.net()));
    if (!weights.empty()) log.warning(weights);
    try {
      const auto rollbacks = run.rollbacks(start, end - 1);
      if (!rollbacks.empty()) advance.to(solver, rollbacks.back().to, rollbacks);
      while (!again.check.first() && solver.iteration() < end)
        solver.step(std::min(kPiece, end - solver.iteration()));
    } catch (const Diverged& diverged) {
      log.warning(diverged.what());
    }
  }
  setting.context->set_log(log.library());
  const std::string proof = proof_of(again, names);
  if (!again.check.first()) {
    log.answer("identical: " + proof);
    return 0;
  }
  log.answer("different: " + proof);
  for (const std::string& one : setting.differences()) log.warning(one);
  for (const std::string& one : run.resumes_after(0)) log.warning(one);
  return 1;
}

REGISTER_VERB(
    reproduce,
    {.summary = "runs a recorded run again and says whether it is the same, bit for bit",
     .usage = "[-iterations K] [flags] DIR",
     .example = "crema reproduce runs/LeNet-1\ncrema reproduce -iterations 200 runs/LeNet-1",
     .meanings = {{"iterations", "How many iterations; by default all of the run."},
                  {"gpu", "The GPU to run on. Empty: as the run."},
                  {"precision", "The precision: fp32, tf32, bf16 or fp16. Empty: as the run."}},
     .min_arguments = 1,
     .max_arguments = 1,
     .run = run_reproduce});

}  // namespace

}  // namespace crema
