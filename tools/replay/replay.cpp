#include "tools/replay/replay.h"

#include <cmath>

#include "base/error.h"
#include "base/files.h"
#include "solver/snapshot/snapshot.h"
#include "solver/solver.h"
#include "tools/replay/advance.h"
#include "tools/replay/recorded_run.h"

namespace crema {
namespace {

std::string rounded_seconds(double seconds) {
  if (seconds < 1) return "less than a second";
  if (seconds < 90) return cat("about ", std::lround(seconds), " s");
  return "about " + (seconds < 5400 ? cat(std::lround(seconds / 60), " min")
                                    : cat(std::lround(seconds / 3600), " h"));
}

void say_what_follows(ProgramLog& log, const RecordedRun& run, const RecordedRun::Start& start,
                      const ReplayRequest& request) {
  const int64_t count = request.last + 1 - start.iteration;
  const std::string from =
      start.state.empty() ? "the start of the run" : cat("iteration ", start.iteration);
  const std::string time =
      run.speed() > 0
          ? cat(", which took the run ", rounded_seconds(static_cast<double>(count) / run.speed()))
          : "";
  log.info(cat("From ", from, " on: ", count, count == 1 ? " iteration" : " iterations", time));
}

// The message of an error in a snapshot names the way out.
std::unique_ptr<Solver> solver_from(const RecordedRun::Start& start, Context& context,
                                    const SolverFile& file, const SolverOptions& options) {
  try {
    return std::make_unique<Solver>(context, file, options);
  } catch (const DeviceLost&) {
    throw;
  } catch (const Error& error) {
    const std::string message = error.what();
    if (start.state.empty() || message.find(folder_of(start.state)) == std::string::npos) throw;
    fail(message, "; or remove ", start.state, ": an earlier one is taken then");
  }
}

}  // namespace

Replayed replay(ProgramLog& log, const RunSetting& setting, const ReplayRequest& request) {
  const RecordedRun& run = setting.run;
  Context& context = *setting.context;
  enter_folder_of(run);
  const RecordedRun::Start start = run.start_for(request.first);
  Replayed replayed{start, {}, RecordCheck(run.iterations(), start.iteration)};
  SolverFile file = run.solver(setting.folder + "/replay", request.first);
  say_what_follows(log, run, start, request);
  context.set_log(silent_log());

  std::vector<std::string> states;
  {
    Advance advance;
    SolverOptions options = setting.solver;
    options.records = true;
    options.snapshot = start.state;
    options.readers = {&replayed.check, &advance};
    const std::unique_ptr<Solver> made = solver_from(start, context, file, options);
    Solver& solver = *made;
    check_names(solver.net(), request.open.dumped);
    try {
      advance.to(solver, request.first, run.rollbacks(start, request.first));
      for (int64_t iteration = request.first; iteration <= request.last; ++iteration) {
        solver.snapshot();
        states.push_back(snapshot_files(solver.parameter(), iteration).state);
        solver.step(1);
      }
    } catch (const Diverged& diverged) {
      replayed.diverged = trim(diverged.what());
      if (states.empty()) throw;
    }
  }
  // Layer by layer, which may round in another way.
  file.solver.set_on_divergence(SolverParameter::IGNORE);
  SolverOptions options = setting.solver;
  options.net.keep_blobs = true;
  options.snapshot = states[0];
  Solver solver(context, file, options);
  IterationOpener opener(solver, request.open);
  for (size_t i = 0; i < states.size(); ++i) {
    if (i > 0) solver.restore(states[i]);
    replayed.iterations.push_back(opener.open());
  }
  context.set_log(log.library());
  return replayed;
}

std::string proof_of(const Replayed& replayed, const std::vector<std::string>& parameters) {
  const RecordCheck& check = replayed.check;
  const auto counted = [](int64_t count, const char* one, const char* more) {
    return cat(count, " ", count == 1 ? one : more);
  };
  if (!check.first()) {
    return cat(counted(check.losses(), "loss", "losses"), " and ",
               counted(check.weights(), "hash of the weights", "hashes of the weights"),
               " from iteration ", replayed.start.iteration,
               " on are those of the run, bit for bit");
  }
  const RecordCheck::Difference& first = *check.first();
  const std::string place =
      check.last_equal() < 0
          ? "Not the run's bits: "
          : cat("Not the run's bits: equal up to iteration ", check.last_equal(), "; ");
  if (!first.weights) {
    const double off = std::abs(first.found - first.recorded);
    return cat(place, "in iteration ", first.iteration, " the loss is ",
               static_cast<float>(first.found), ", and was ", static_cast<float>(first.recorded),
               " (", static_cast<float>(off / std::max(std::abs(first.recorded), 1e-30)),
               " of it apart)");
  }
  std::vector<std::string> names;
  for (const int index : first.parameters) {
    if (static_cast<size_t>(index) < parameters.size())
      names.push_back(parameters[static_cast<size_t>(index)]);
  }
  constexpr size_t kShown = 4;
  const size_t more = names.size() > kShown ? names.size() - kShown : 0;
  if (more > 0) names.resize(kShown);
  return cat(place, "before iteration ", first.iteration, " the weights differ",
             names.empty() ? "" : ", of ", join(names, ", "),
             more > 0 ? cat(" and ", more, " more") : "");
}

}  // namespace crema
