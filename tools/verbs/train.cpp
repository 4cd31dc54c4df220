// `crema train -solver SOLVER.prototxt`: trains a net, from its initial values, from weights or
// from a snapshot.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <iostream>
#include <optional>

#include "base/files.h"
#include "device/memory_account.h"
#include "net/records.h"
#include "solver/check/check.h"
#include "solver/fields/solver_nets.h"
#include "solver/readers/iterations_file.h"
#include "solver/readers/metrics_reader.h"
#include "solver/readers/pictures_reader.h"
#include "solver/readers/tensorboard_reader.h"
#include "solver/snapshot/snapshot.h"
#include "solver/solver.h"
#include "solver/test/class_metrics.h"
#include "tools/devices.h"
#include "tools/flags/net_flags.h"
#include "tools/flags/shell_words.h"
#include "tools/inputs/random_inputs.h"
#include "tools/measure/memory_use.h"
#include "tools/ranks/start_ranks.h"
#include "tools/ranks/world_flags.h"
#include "tools/replay/fork.h"
#include "tools/runs/expanded_solver.h"
#include "tools/runs/resume_check.h"
#include "tools/runs/run_folder.h"
#include "tools/runs/spike_advice.h"
#include "tools/runs/status_reader.h"
#include "tools/runs/stop_advice.h"
#include "tools/runs/track_reader.h"
#include "tools/runs/train_nets.h"
#include "tools/signals.h"
#include "tools/verb.h"

namespace crema {

namespace {

using TrainFlags =
    FlagsOf<"solver", "model", "gpu", "batch_mode", "rank_timeout", "wire", "buckets", "shard",
            "snapshot", "weights", "weights_mode", "teacher", "teacher_weights", "level", "stage",
            "sigint_effect", "sighup_effect", "sigterm_effect", "assume", "batch", "implementation",
            "precision", "gpu_memory", "tune", "deterministic", "off", "recompute", "dump_plan",
            "set", "metrics", "run", "fork", "track", "resume_check", "tensorboard",
            "tensorboard_histograms", "rgb", "engine", "param_server">;

void say_device_as_caffe(ProgramLog& log, const Context& context) {
  if (context.device() == Device::cpu) {
    log.info("Use CPU.");
  } else {
    log.info(cat("Using GPUs ", context.ordinal()));
    log.info(cat("GPU ", context.ordinal(), ": ", gpu_name(context.ordinal())));
  }
}

// The start of a command, as the user wrote it: "crema train" or "build/tools/train".
std::string program_of(const VerbCall& call) {
  const std::string& path = call.words.at(0);
  const std::string name = std::filesystem::path(path).filename();
  return shell_quoted(path) + (VerbRegistry::has(name) ? "" : " train");
}

// The command with these flags, but resuming from `state`.
std::string resume_command(const std::string& program, const FlagValues& flags,
                           const std::string& state) {
  std::string command = program;
  for (const std::string& name : VerbRegistry::find("train")->run.flags()) {
    const auto values = flags.find(name);
    static constexpr std::string_view kOfStart[] = {"snapshot", "fork", "weights", "weights_mode"};
    if (values == flags.end() || std::ranges::find(kOfStart, name) != std::end(kOfStart)) continue;
    const char* const separator = lookup_flag(name)->type == "string" ? " " : "=";
    for (const std::string& value : values->second)
      command += cat(" -", name, separator, shell_quoted(value));
  }
  return command + " -snapshot " + shell_quoted(state);
}

// For -run; null without it. From here on `values` name the folder.
std::unique_ptr<RunFolder> make_run_folder(ProgramLog& log, const TrainFlags& flags,
                                           const SolverFile& file, FlagValues* values) {
  if (flags.run.empty()) return nullptr;
  require_net_files(file);
  const std::string of_net = open_net(file, train_source(file)).net.name();
  const std::string of_file = std::filesystem::path(file.path).stem();
  auto run = std::make_unique<RunFolder>(log, *values, safe_name(of_net).empty() ? of_file : of_net,
                                         flags.snapshot);
  (*values)["run"] = {run->path()};
  return run;
}

// `values`: of the command that resumes, when it is asked for.
SolverOptions options_of_flags(const TrainFlags& flags, const std::string& program,
                               const FlagValues& values) {
  SolverOptions options;
  if (!flags.weights.empty()) options.weights = {flags.weights};
  options.weights_mode = weights_mode_of_flag(flags.weights_mode);
  options.snapshot = flags.snapshot;
  options.metrics = parse_class_metrics(flags.metrics);
  options.confusions = true;
  NetState state;
  add_level_and_stages(flags, &state);
  options.level = state.level();
  options.stages.assign(state.stage().begin(), state.stage().end());
  set_passes(flags, &options.net);
  options.resume_command = [program, &values](const std::string& state) {
    return resume_command(program, values, state);
  };
  return options;
}

// The findings of `crema check`, without its notes. The solver has been created, so all errors were
// reported.
void log_findings(ProgramLog& log, const TrainFlags& flags, const SolverFile& file,
                  const SolverOptions& options) {
  CheckOptions check;
  check.weights = options.weights;
  check.resumes = !options.snapshot.empty();
  check.reads_weights = false;
  add_level_and_stages(flags, &check.state);
  try {
    for (const Finding& finding : check_training(file, check)) {
      if (finding.severity != Severity::info) log.warning(cat(finding.where, ": ", finding.text));
    }
  } catch (const Error& error) {
    // A net from a pipe has been read already; training goes on without advice.
    log.info(cat("The files cannot be read back for a check: ", error.what()));
  }
}

Signals::Effects effects_of_flags(const TrainFlags& flags) {
  return {.interrupt = action_named("sigint_effect", flags.sigint_effect),
          .hangup = action_named("sighup_effect", flags.sighup_effect),
          .terminate = action_named("sigterm_effect", flags.sigterm_effect)};
}

std::string on_arrival_text(int signal, Action effect) {
  const char* const flag = signal == SIGINT    ? "-sigint_effect none"
                           : signal == SIGTERM ? "-sigterm_effect none"
                                               : "-sighup_effect none";
  const std::string what = effect == Action::none       ? cat(flag, ": training continues")
                           : effect == Action::snapshot ? "a snapshot follows this iteration"
                           : effect == Action::stop
                               ? "stopping after this iteration"
                               : "stopping after this iteration, with a snapshot";
  if (signal != SIGINT) return cat(signal == SIGTERM ? "SIGTERM: " : "SIGHUP: ", what);
  return cat("Interrupted: ", what, ". Ctrl-C again before that ends the program at once.");
}

void check_resume_flags(const TrainFlags& flags) {
  require(flags.resume_check >= 0, "-resume_check is ", flags.resume_check,
          "; expected the number of iterations before the snapshot, such as 50");
  require(flags.resume_check == 0 || (flags.run.empty() && flags.snapshot.empty()),
          "-resume_check trains from the start and keeps nothing: leave out -",
          flags.run.empty() ? "snapshot" : "run");
}

// For -snapshot auto. The others are a fallback in case the newest is incomplete.
void take_newest_snapshot(std::vector<std::string> found, SolverOptions* options) {
  options->snapshot = found.empty() ? "" : found[0];
  if (!found.empty()) found.erase(found.begin());
  options->older_snapshots = std::move(found);
}

void fill_inputs(const std::string& assume, Solver& solver) {
  if (assume.empty()) return;
  fill_random_inputs(solver.net());
  for (const auto& net : solver.test_nets()) fill_random_inputs(*net);
}

bool asks_for_gpu(const SolverFile& file) {
  // Only a mode that the file sets explicitly counts: the schema's default is GPU, but without it
  // Caffe computes on the CPU.
  return file.solver.has_solver_mode() && file.solver.solver_mode() == SolverParameter::GPU;
}

std::unique_ptr<Context> make_train_context(ProgramLog& log, const TrainFlags& flags,
                                            const SolverFile& file) {
  const auto& numbers = file.solver.device_id();
  const int number = numbers.empty() ? 0 : numbers[0];
  std::unique_ptr<Context> context = make_context(log, flags, asks_for_gpu(file) ? number : -1);
  say_device_as_caffe(log, *context);
  return context;
}

// The folder for event files: that of -tensorboard, or for "auto" the folder `tensorboard` in `beside`;
// "": none is wanted.
std::string tensorboard_folder(const TrainFlags& flags, const std::string& beside) {
  require(flags.tensorboard_histograms >= 0, "-tensorboard_histograms is ",
          flags.tensorboard_histograms, ", it must be a number of iterations, or 0 for none");
  require(flags.tensorboard_histograms == 0 || !flags.tensorboard.empty(),
          "-tensorboard_histograms needs a folder to write to: -tensorboard DIR");
  const std::string folder =
      flags.tensorboard == "auto" ? beside + "/tensorboard" : flags.tensorboard;
  require(folder.empty() || folder_exists(folder) || !file_exists(folder), "-tensorboard ", folder,
          ": is a file; expected a folder, or a new name for one");
  return folder;
}

// The readers of the events, and their inputs.
struct Readers {
  Readers(ProgramLog& log, const TrainFlags& flags, const SolverFile& file,
          const SolverOptions& options, const RunFolder* run)
      : metrics(
            run ? MetricsReader(log, MetricsReader::OneRun{run->path()})
                : MetricsReader(log, folder_of(file.solver.snapshot_prefix()) + "/metrics.jsonl")),
        advice(log, options.resume_command),
        status(log) {
    all = {&metrics, &advice};
    const std::string folder =
        tensorboard_folder(flags, run ? run->path() : folder_of(file.solver.snapshot_prefix()));
    if (!folder.empty()) all.push_back(&board.emplace(log, folder));
    if (run) all.push_back(&pictures.emplace(log, run->file("pictures")));
    if (run) all.push_back(&iterations.emplace(log, run->file("iterations.csv")));
    if (run) all.push_back(&spikes.emplace(log, run->path()));
    if (run && !flags.track.empty()) all.push_back(&track.emplace(log, run->path(), flags.track));
    if (log.has_terminal()) all.push_back(&status);
  }
  MetricsReader metrics;
  StopAdvice advice;
  StatusReader status;
  std::optional<TensorboardReader> board;
  std::optional<PicturesReader> pictures;
  std::optional<IterationsReader> iterations;
  std::optional<SpikeAdvice> spikes;
  std::optional<TrackReader> track;
  std::vector<EventReader*> all;
};

// On one rank of several, or alone. `world` is null then. `values`: as the command gives them.
int train(const VerbCall& call, const TrainFlags& flags, FlagValues values, SolverFile file,
          Signals& signals, World* world, const std::optional<Fork>& fork) {
  ProgramLog& log = call.log;
  SolverOptions options = options_of_flags(flags, program_of(call), values);
  const bool first = !world || world->rank == 0;
  const std::unique_ptr<RunFolder> run =
      first ? make_run_folder(log, flags, file, &values) : nullptr;
  write_notes(log, file.notes);
  take_assume_flag(log, flags, &file);
  const SolverFile given = file;
  if (run) run->take_snapshots(&file.solver);
  // A run folder is rank 0's.
  const std::string prefix = from_rank_0(world, file.solver.snapshot_prefix());
  if (!prefix.empty()) file.solver.set_snapshot_prefix(prefix);
  if (flags.snapshot == "auto") {
    take_newest_snapshot(
        from_rank_0(world, first ? newest_snapshots(file.solver, log) : std::vector<std::string>()),
        &options);
  }
  if (fork && options.snapshot.empty())
    options.snapshot = write_fork(log, values, *fork, file.solver.snapshot_prefix());
  if (!options.snapshot.empty()) options.weights.clear();  // those of a first start

  const std::unique_ptr<Context> context = make_train_context(log, flags, file);
  options.net.precision = precision_of_flag(*context, flags.precision, file.solver.precision());
  log_device(log, flags, *context, options.net.precision);
  if (world) world->connect(*context);
  const auto fill = [&flags](Solver& solver) { fill_inputs(flags.assume, solver); };
  options.fills_inputs = !flags.assume.empty();
  options.exchange = exchange_of_flags(flags);
  options.shard = flags.shard;
  if (flags.resume_check > 0) {
    require(!world, "-resume_check works with one rank: start it alone, on one GPU");
    options.action = [&signals] { return signals.action(); };
    check_resume(log, *context, file, options, flags.resume_check, fill);
    return 0;
  }

  options.action = [&] {
    const Action asked = signals.action();
    return asked == Action::none && run ? run->action() : asked;
  };
  std::optional<Readers> readers;
  if (first) {
    options.readers = readers.emplace(log, flags, file, options, run.get()).all;
    options.pictures = readers->board || readers->pictures;
  }
  // Mistakes in tests are those of all ranks.
  options.pictures = from_rank_0(world, options.pictures ? "yes" : "no") == "yes";
  options.records = from_rank_0(world, run ? "yes" : "no") == "yes";
  options.rgb = flags.rgb;
  options.histograms = flags.tensorboard_histograms;

  Solver solver(*context, file, options);
  if (first) {
    const int64_t records = solver.epoch_length().records, of_ranks = solver.net().share().all;
    readers->status.set_sizes(
        (of_ranks > 0 ? of_ranks : batch_of(solver.net()) * context->ranks()) *
            file.solver.iter_size(),
        records > 0 ? records : records_of(solver.net()));
    readers->status.set_memory([&context] {
      return context->device() == Device::gpu ? context->memory()->taken() : resident_set();
    });
  }
  fill(solver);
  if (flags.dump_plan && first) std::cout << solver.net().dump_plan();
  if (first) log_findings(log, flags, file, options);
  if (run) run->begin(given, flags, solver);
  if (first && file.solver.display() == 0 && file.solver.test_interval() == 0)
    log.info("display is 0: no loss is logged; display: 100 logs it every 100 iterations");
  log.info("Starting Optimization");
  solver.solve();
  if (first) log_process_memory(log, *context);
  log.info("Optimization Done.");
  return 0;
}

int run_train(const VerbCall& call, const TrainFlags& given) {
  ProgramLog& log = call.log;
  FlagValues values = call.flags;
  ForkFlags forked = given;
  const std::optional<Fork> fork = fork_of_flags(&forked);
  TrainFlags flags = given;
  flags.solver = forked.solver;
  flags.run = forked.run;
  if (fork) values["run"] = {flags.run};
  std::string solver = flags.solver;
  if (solver.empty() && !flags.snapshot.empty() && file_exists(flags.run + "/run.json")) {
    solver = flags.run + "/solver.prototxt";
    values["solver"] = {solver};
  }
  require(!solver.empty() || fork, "a solver is needed: -solver SOLVER.prototxt");
  require(flags.snapshot.empty() || flags.snapshot == "auto" || flags.weights.empty(),
          "-snapshot resumes training, -weights starts a new run: give one of them");
  check_resume_flags(flags);
  require(flags.track.empty() || !flags.run.empty(), "-track ", flags.track,
          " sends the folder of a run: add -run auto");
  const std::optional<Launch> launch = launch_of_environment();
  const Signals::Effects effects = effects_of_flags(flags);
  const auto tell = [&log](int signal, Action effect) {
    log.info(on_arrival_text(signal, effect));
  };
  const auto read = [&] {
    const auto settings = std::make_shared<Settings>(flags.set);
    SolverFile file =
        solver.empty() ? fork->run.written_solver(settings) : read_solver_file(solver, settings);
    take_model_flag(flags.model, &file);
    if (!flags.teacher.empty()) file.solver.mutable_teacher()->set_net(flags.teacher);
    if (!flags.teacher_weights.empty())
      file.solver.mutable_teacher()->set_weights(flags.teacher_weights);
    return file;
  };
  if (!launch) {
    const SolverFile file = read();
    if (const std::vector<int> gpus = gpus_of_ranks(log, flags.gpu, file); !gpus.empty()) {
      require_one_rank(fork);
      return start_ranks(gpus, call.words);
    }
    Signals signals(effects, tell);
    return train(call, flags, values, file, signals, nullptr, fork);
  }
  require_one_rank(fork);
  Signals signals(effects, tell);  // before MPI starts threads
  const std::unique_ptr<World> world = meet_ranks(log, flags, *launch);
  return run_on_rank(log, flags, *world, [&] {
    const SolverFile file = read();
    TrainFlags of_rank = flags;
    of_rank.gpu = gpu_of_rank(*launch, flags.gpu, asks_for_gpu(file));
    return train(call, of_rank, values, file, signals, world.get(), std::nullopt);
  });
}

REGISTER_VERB(
    train,
    {.summary = "trains the net of a solver.prototxt",
     .usage = "-solver SOLVER.prototxt [-run DIR|auto] [-snapshot FILE|auto | -weights "
              "FILES] [flags]",
     .example = "crema train -solver models/lenet/digits_solver.prototxt -run auto\ncrema train "
                "-solver models/lenet/digits_solver.prototxt -set base_lr=0.02 -set type=Adam",
     .meanings = {{"model", "The net to train instead of the solver's: a prototxt file."},
                  {"gpu",
                   "The number of the GPU to run on; several, separated by commas, or all: one "
                   "rank each. Empty: the solver's setting, else the CPU."},
                  {"rgb",
                   "The channels of the pictures in the run folder and in TensorBoard are R, G, B; "
                   "otherwise B, G, R."}},
     .log = LogStyle::timed,
     .run = run_train});

}  // namespace

}  // namespace crema
