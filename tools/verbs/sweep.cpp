// `crema sweep -solver SOLVER.prototxt -sweep base_lr=0.1,0.01 -run DIR`: trains every combination
// of values, each in a separate process, and compares them.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <thread>

#include "base/files.h"
#include "base/visible.h"
#include "solver/fields/solver_nets.h"
#include "tools/console/table.h"
#include "tools/devices.h"
#include "tools/flags/net_flags.h"
#include "tools/measure/memory_use.h"
#include "tools/runs/train_nets.h"
#include "tools/tune/sweep_runs.h"
#include "tools/tune/training_memory.h"
#include "tools/verb.h"

namespace crema {

namespace {

using SweepFlags =
    FlagsOf<"solver", "sweep", "run", "random", "seed", "jobs", "gpu", "model", "weights",
            "weights_mode", "level", "stage", "assume", "batch", "implementation", "precision",
            "tune", "deterministic", "off", "metrics", "gpu_memory", "set">;

constexpr auto pause_between_looks = std::chrono::milliseconds(20);
constexpr size_t checked_combinations = 200;

// Flags that every training gets as the sweep does.
const std::vector<std::string>& passed_flags() {
  static const std::vector<std::string> flags = {
      "model",         "weights", "weights_mode",   "level",     "stage",
      "assume",        "batch",   "implementation", "precision", "tune",
      "deterministic", "off",     "metrics",        "gpu_memory"};
  return flags;
}

std::vector<std::string> flags_of_trainings(const FlagValues& given) {
  std::vector<std::string> words;
  for (const std::string& name : passed_flags()) {
    if (const auto flag = given.find(name); flag != given.end())
      words.push_back(cat("-", name, "=", flag->second[0]));
  }
  if (const auto settings = given.find("set"); settings != given.end())
    for (const std::string& setting : settings->second) words.push_back("-set=" + setting);
  return words;
}

// A mistake in a path or a value is told before anything is trained.
void check_combinations(const SweepFlags& flags,
                        const std::vector<std::vector<std::string>>& combinations) {
  for (size_t i = 0; i < std::min(combinations.size(), checked_combinations); ++i) {
    std::vector<std::string> settings = flags.set;
    settings.insert(settings.end(), combinations[i].begin(), combinations[i].end());
    SolverFile file = read_solver_file(flags.solver, std::make_shared<Settings>(settings));
    if (!flags.model.empty()) continue;  // which replaces the nets that the settings may be of
    open_net(file, train_source(file));
    for (const NetSource& source : test_sources(file)) open_net(file, source);
    file.settings->require_used();
  }
}

// How many of the runs fit into memory at the same time: at least one, at most `jobs`. Only the
// first combinations are measured, because the others hardly differ.
int jobs_in_memory(ProgramLog& log, const SweepFlags& flags, int jobs,
                   const std::vector<std::vector<std::string>>& combinations) {
  constexpr size_t counted_combinations = 16;
  // Random inputs are made by the training itself.
  if (jobs == 1 || !flags.assume.empty() || flags.batch != 0) return jobs;
  size_t most = 1;
  const std::unique_ptr<Context> context = make_context(log, flags);
  context->set_log(silent_log());
  for (size_t i = 0; i < std::min(combinations.size(), counted_combinations); ++i) {
    std::vector<std::string> settings = flags.set;
    settings.insert(settings.end(), combinations[i].begin(), combinations[i].end());
    SolverFile file = read_solver_file(flags.solver, std::make_shared<Settings>(settings));
    take_model_flag(flags.model, &file);
    try {
      NetSource source = train_source(file);
      add_level_and_stages(flags, &source.state);
      most =
          std::max(most, memory_of_training(*context, flags.precision, file, source).first.total());
    } catch (const Error&) {
      // Its own training says so, in its row.
    }
  }
  const size_t available = available_memory();
  const int fit = static_cast<int>(std::clamp<size_t>(available / most, 1, jobs));
  if (fit < jobs)
    log.warning(cat("-jobs ", jobs, ": a run needs ", size_text(most), ", and ",
                    size_text(available), " are available: ", fit, " at the same time"));
  return fit;
}

// The output that keep_best watches, if the solver sets it.
SweepScore score_of(const SolverParameter& solver) {
  SweepScore score;
  if (!solver.has_keep_best() || solver.keep_best().test_net() != 0) return score;
  score.output = solver.keep_best().output();
  if (solver.keep_best().better() == TestWatch::LARGER) score.better = SweepScore::Better::larger;
  if (solver.keep_best().better() == TestWatch::SMALLER) score.better = SweepScore::Better::smaller;
  return score;
}

SweepPlaces places_of(const SweepFlags& flags) {
  require(flags.jobs >= 0, "-jobs ", flags.jobs,
          ": expected the number of runs to train at the same time");
  SweepPlaces places;
  if (!flags.gpu.empty()) places.gpus = gpus_of(flags.gpu);
  places.jobs =
      flags.jobs > 0 ? flags.jobs : std::max<int>(1, static_cast<int>(places.gpus.size()));
  return places;
}

// The result of an earlier sweep in the folder, if it belongs to the same run.
SweepRecord record_for(const SweepFlags& flags, const std::vector<std::string>& passed) {
  const std::string path = flags.run + "/sweep.json";
  SweepRecord record = read_sweep(path);
  if (record.runs.empty()) {
    record.solver = flags.solver;
    record.flags = passed;
    return record;
  }
  require(record.solver == flags.solver && record.flags == passed, path,
          ": the runs there belong to -solver ", record.solver, " ", join(record.flags, " "),
          "; continue with these flags, or give another -run");
  return record;
}

// A page that compares the runs; that there is none ends no sweep.
void write_report(ProgramLog& log, const std::string& folder) {
  const std::string page = folder + "/report.html";
  ChildProcess report({"report", folder, "-run_id=all", "-output=" + page}, {});
  while (!report.ended()) std::this_thread::sleep_for(pause_between_looks);
  if (report.message().empty()) {
    log.info("Wrote " + page);
  } else {
    log.warning("There is no report of the runs: " + report.message());
  }
}

int run_sweep(const VerbCall& call, const SweepFlags& flags) {
  require(!flags.solver.empty(), "a solver is needed: -solver SOLVER.prototxt");
  require(flags.sweep_given,
          "-sweep is missing: the values to try, such as -sweep base_lr=0.1,0.01");
  require(!flags.run.empty() && flags.run != "auto", "a folder for the runs is needed: -run DIR");
  require(flags.random >= 0, "-random ", flags.random, ": expected how many combinations to train");
  SweepPlaces places = places_of(flags);
  const auto combinations = combinations_of(parse_sweep(flags.sweep), flags.random, flags.seed);
  check_combinations(flags, combinations);
  const SweepScore score =
      score_of(read_solver_file(flags.solver, std::make_shared<Settings>(flags.set)).solver);
  SweepRecord record = record_for(flags, flags_of_trainings(call.flags));
  const std::vector<size_t> chosen = record.take(combinations);
  if (places.gpus.empty()) places.jobs = jobs_in_memory(call.log, flags, places.jobs, combinations);
  std::filesystem::create_directories(flags.run);

  SweepRuns sweep(call.log, places, flags.run, record, chosen, score);
  sweep.run();
  std::vector<SweepResult> results = sweep.results();
  sort_results(&results);
  write_file_atomically(flags.run + "/sweep.csv", csv_of(results));
  call.log.info(cat("Wrote ", flags.run, "/sweep.csv"));
  if (!results[0].values.empty()) write_report(call.log, flags.run);
  print_table(table_of(results), 1);
  for (const SweepResult& result : results) {
    if (result.run.state == SweepRun::State::failed)
      std::cout << "Run " << result.run.name << " failed: " << visible(result.run.message) << "\n";
  }
  if (sweep.stopped()) std::cout << "The same command continues with the missing ones.\n";
  const bool all_failed = std::all_of(
      results.begin(), results.end(),
      [](const SweepResult& result) { return result.run.state == SweepRun::State::failed; });
  return all_failed ? 1 : 0;
}

REGISTER_VERB(
    sweep,
    {.summary = "trains with each combination of settings, and compares the results",
     .usage = "-solver SOLVER.prototxt -sweep PATH=VALUE,VALUE... -run DIR [flags]",
     .example = "crema sweep -solver models/lenet/digits_solver.prototxt -run runs/rates -sweep "
                "base_lr=0.05,0.01 -sweep type=SGD,Adam",
     .meanings = {{"run", "The folder of the sweep, with one run folder per combination."},
                  {"seed", "The seed of -random: the same one chooses the same combinations."},
                  {"gpu",
                   "The cards to train on, separated by commas, or all: one run on each at a time. "
                   "Empty: the solver's setting, else the CPU."},
                  {"model", "The net to train instead of the solver's: a prototxt file."}},
     .run = run_sweep});

}  // namespace

}  // namespace crema
