// `crema train -solver SOLVER.prototxt`: trains a net, from its initial values, from weights or
// from a snapshot.
#include <iostream>

#include "base/files.h"
#include "net/filter.h"
#include "net/records.h"
#include "solver/check.h"
#include "solver/class_metrics.h"
#include "solver/readers/metrics_reader.h"
#include "solver/snapshot.h"
#include "solver/solver.h"
#include "solver/solver_nets.h"
#include "tools/assume.h"
#include "tools/devices.h"
#include "tools/flags.h"
#include "tools/model_flag.h"
#include "tools/random_inputs.h"
#include "tools/settings_flag.h"
#include "tools/shell_words.h"
#include "tools/signals.h"
#include "tools/status_reader.h"
#include "tools/switches.h"
#include "tools/verb.h"
#include "tools/weights_flag.h"

namespace crema {

namespace {

// Replaces every net that the solver names by -model.
void replace_net(SolverParameter* solver) {
  solver->clear_net_param();
  solver->clear_train_net();
  solver->clear_train_net_param();
  solver->clear_test_net();
  solver->clear_test_net_param();
  solver->set_net(FLAGS_model);
}

// Removes the layers of other phases and stages, whose sources need no shapes.
void keep_layers_of(NetFile* net, const NetState& state, Log& log) {
  std::vector<int> kept;
  net->net =
      filter_net(net->net, state, log, &kept, [net](int layer) { return net->where(layer); });
  std::vector<std::string> origins;
  for (const int layer : kept) origins.push_back(net->upgrade.origins[layer]);
  net->upgrade.origins = origins;
}

// Writes the solver's nets, with their sources replaced, inside the solver.
void rewrite_sources(ProgramLog& log, SolverFile* file) {
  SourceReplacer replacer(log, FLAGS_assume, FLAGS_batch);
  const auto rewritten = [&](const NetSource& source, Phase phase) {
    NetFile net = open_net(*file, source);
    write_notes(log, net.upgrade.notes);
    net.upgrade.notes.clear();
    NetState state = source.state;
    if (phase == TRAIN) add_level_and_stages(&state);
    keep_layers_of(&net, net_state(phase, net.net, state), log);
    replacer.replace(net.net, [&net](int layer) { return net.where(layer); });
    return net;
  };
  const NetFile train = rewritten(train_source(*file), TRAIN);
  std::vector<NetFile> tests;
  for (const NetSource& source : test_sources(*file))
    tests.push_back(source.test_iter > 0 ? rewritten(source, TEST) : NetFile());
  replacer.finish();
  SolverParameter& solver = file->solver;
  replace_net(&solver);
  solver.clear_net();
  file->rewritten.emplace("train_net_param", train);
  *solver.mutable_train_net_param() = train.net;
  for (size_t i = 0; i < tests.size(); ++i) {
    file->rewritten.emplace(cat("test_net_param[", i, "]"), tests[i]);
    *solver.add_test_net_param() = tests[i].net;
  }
}

void say_device_as_caffe(ProgramLog& log, const Context& context) {
  if (context.device() == Device::cpu) {
    log.info("Use CPU.");
  } else {
    log.info(cat("Using GPUs ", context.ordinal()));
    log.info(cat("GPU ", context.ordinal(), ": ", gpu_name(context.ordinal())));
  }
}

// The number in device_id; if there are several, as forks for multi-GPU training accept, the first.
int gpu_of_solver(Log& log, const SolverFile& file) {
  const auto& numbers = file.solver.device_id();
  if (numbers.size() > 1 && FLAGS_gpu.empty()) {
    log.warning(cat(file.where("device_id"), ": device_id names ", numbers.size(),
                    " GPUs, but several are not supported yet: only the first one, ", numbers[0],
                    ", is asked for; iter_size: ", numbers.size() * file.solver.iter_size(),
                    " gives the batches that all of them would"));
  }
  return numbers.empty() ? 0 : numbers[0];
}

// This command, but resuming from `state`.
std::string resume_command(const std::string& state) {
  std::string command = "crema train";
  for (const std::string& name : VerbRegistry::find("train")->flags) {
    const auto flag = gflags::GetCommandLineFlagInfoOrDie(name.c_str());
    if (flag.is_default || name == "snapshot" || name == "weights" || name == "weights_mode")
      continue;
    if (name == "set") {
      for (const std::string& setting : settings_of_flag())
        command += " -set " + shell_quoted(setting);
      continue;
    }
    command += cat(" -", name, flag.type == "string" ? " " : "=", shell_quoted(flag.current_value));
  }
  return command + " -snapshot " + shell_quoted(state);
}

SolverOptions options_of_flags() {
  SolverOptions options;
  if (!FLAGS_weights.empty()) options.weights = {FLAGS_weights};
  options.weights_mode = weights_mode_of_flag();
  options.snapshot = FLAGS_snapshot;
  options.metrics = parse_class_metrics(FLAGS_metrics);
  NetState state;
  add_level_and_stages(&state);
  options.level = state.level();
  options.stages.assign(state.stage().begin(), state.stage().end());
  set_passes(&options.net);
  options.resume_command = resume_command;
  return options;
}

// What `crema check` finds, but for its notes. The solver has been made, so all errors were told.
void log_findings(ProgramLog& log, const SolverFile& file, const SolverOptions& options) {
  CheckOptions check;
  check.weights = options.weights;
  check.resumes = !options.snapshot.empty();
  check.reads_weights = false;
  add_level_and_stages(&check.state);
  try {
    for (const Finding& finding : check_training(file, check)) {
      if (finding.severity != Severity::info) log.warning(cat(finding.where, ": ", finding.text));
    }
  } catch (const Error& error) {
    // A net from a pipe has been read already; training goes on without advice.
    log.info(cat("The files cannot be read again for a check: ", error.what()));
  }
}

int run_train(const VerbCall& call) {
  ProgramLog& log = call.log;
  require(!FLAGS_solver.empty(), "a solver is needed: -solver SOLVER.prototxt");
  const bool newest = FLAGS_snapshot == "auto";
  require(FLAGS_snapshot.empty() || newest || FLAGS_weights.empty(),
          "-snapshot resumes training, -weights starts a new run: give one of them");
  Signals signals({.interrupt = action_named("sigint_effect", FLAGS_sigint_effect),
                   .hangup = action_named("sighup_effect", FLAGS_sighup_effect),
                   .terminate = action_named("sigterm_effect", FLAGS_sigterm_effect)});
  SolverOptions options = options_of_flags();
  options.action = [&signals] { return signals.action(); };

  SolverFile file = read_solver_file(FLAGS_solver, std::make_shared<Settings>(settings_of_flag()));
  write_notes(log, file.notes);
  if (newest) {
    options.older_snapshots = newest_snapshots(file.solver, log);
    options.snapshot = options.older_snapshots.empty() ? "" : options.older_snapshots[0];
    if (!options.snapshot.empty()) options.older_snapshots.erase(options.older_snapshots.begin());
  }
  if (!options.snapshot.empty()) options.weights.clear();  // those of a first start
  require(FLAGS_model.empty() || file_exists(find_file(FLAGS_model, folder_of(FLAGS_solver))),
          "-model ", FLAGS_model, ": there is no such file");
  if (!FLAGS_model.empty()) replace_net(&file.solver);
  if (!FLAGS_assume.empty() || FLAGS_batch != 0) rewrite_sources(log, &file);

  // Only a mode that the file sets explicitly counts: the schema's default is GPU, but without it
  // Caffe computes on the CPU.
  const bool wants_gpu =
      file.solver.has_solver_mode() && file.solver.solver_mode() == SolverParameter::GPU;
  const std::unique_ptr<Context> context =
      make_context(log, wants_gpu ? gpu_of_solver(log, file) : -1);
  say_device_as_caffe(log, *context);
  options.net.precision = precision_of_flag(*context, file.solver.precision());
  log_device(log, *context, options.net.precision);
  options.capture = switches_of_flag().capture;

  MetricsReader metrics(log, folder_of(file.solver.snapshot_prefix()) + "/metrics.jsonl");
  StatusReader status(log);
  options.readers = {&metrics};
  options.fills_inputs = !FLAGS_assume.empty();
  if (log.has_terminal()) options.readers.push_back(&status);

  Solver solver(*context, file, options);
  status.set_sizes(batch_of(solver.net()) * file.solver.iter_size(), records_of(solver.net()));
  if (!FLAGS_assume.empty()) {
    fill_random_inputs(solver.net());
    for (const auto& net : solver.test_nets()) fill_random_inputs(*net);
  }
  if (FLAGS_dump_plan) std::cout << solver.net().dump_plan();
  log_findings(log, file, options);
  log.info("Starting Optimization");
  solver.solve();
  log.info("Optimization Done.");
  return 0;
}

REGISTER_VERB(train,
              {.summary = "trains a net as its solver.prototxt says",
               .usage = "-solver SOLVER.prototxt [-snapshot FILE|auto | -weights FILES] [flags]",
               .flags = {"solver",        "model",          "gpu",
                         "snapshot",      "weights",        "weights_mode",
                         "level",         "stage",          "sigint_effect",
                         "sighup_effect", "sigterm_effect", "assume",
                         "batch",         "implementation", "precision",
                         "gpu_memory",    "tune",           "deterministic",
                         "off",           "dump_plan",      "set",
                         "metrics"},
               .run = run_train});

}  // namespace

}  // namespace crema
