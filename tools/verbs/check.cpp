// `crema check -solver SOLVER.prototxt`: finds the problems of a training run before it begins.
#include "solver/check/check.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "base/files.h"
#include "base/visible.h"
#include "device/memory.h"
#include "net/check/checks.h"
#include "net/graph/filter.h"
#include "solver/fields/solver_nets.h"
#include "solver/rates/schedules.h"
#include "solver/snapshot/training_copy.h"
#include "tools/console/terminal.h"
#include "tools/devices.h"
#include "tools/exchange/check_target.h"
#include "tools/flags/net_flags.h"
#include "tools/flags/solver_flags.h"
#include "tools/tune/training_memory.h"
#include "tools/verb.h"

namespace crema {

namespace {

using CheckFlags = FlagsOf<"solver", "weights", "level", "stage", "gpu", "gpu_memory", "precision",
                           "tune", "set", "model", "target", "assume">;

bool has_errors(const Findings& findings) {
  return std::any_of(findings.begin(), findings.end(),
                     [](const Finding& finding) { return finding.severity == Severity::error; });
}

// The line of a finding; its "error" or "warning" may be coloured.
std::string shown_line(const Finding& finding, bool colour) {
  const std::string line = visible(line_of(finding));
  if (finding.severity == Severity::info) return line;
  const size_t begin = visible(finding.where).size() + 2, end = line.find(':', begin);
  return line.substr(0, begin) +
         painted(line.substr(begin, end - begin),
                 finding.severity == Severity::error ? Colour::red : Colour::yellow, colour) +
         line.substr(end);
}

// Collects the warnings of the first steps of a run.
class Warnings : public Log {
 public:
  explicit Warnings(std::string otherwise) : otherwise_(std::move(otherwise)) {}
  void write(Severity severity, const std::source_location&, std::string_view line) override {
    if (severity != Severity::info)
      found.push_back(finding_of(severity, std::string(line), otherwise_));
  }
  Findings found;

 private:
  std::string otherwise_;
};

// Warnings from reading the files.
void add_notes(const std::vector<Note>& notes, const std::string& path, Findings* findings) {
  for (const Note& note : notes) {
    if (note.severity != Severity::info)
      findings->push_back(finding_of(note.severity, note.line, path));
  }
}

// A folder for snapshots that is not there, which a run without -run does not make.
void check_snapshot_place(const SolverFile& file, Findings* findings) {
  const SolverParameter& solver = file.solver;
  const std::string folder = folder_of(solver.snapshot_prefix());
  const bool writes = solver.snapshot() > 0 || solver.snapshot_minutes() > 0 ||
                      solver.has_keep_best() || solver.snapshot_after_train();
  if (!writes || folder.empty() || folder_exists(folder)) return;
  add(findings, Severity::warning, file.where("snapshot_prefix"), "the folder ", folder,
      " of snapshot_prefix does not exist: make it, or train with -run auto, which has one of its "
      "own");
}

// Makes the nets without allocating memory: refuses what training would, and reports the memory
// that the training net needs.
std::string memory_line(ProgramLog& log, const CheckFlags& flags, Log& warnings,
                        const SolverFile& file, const NetSource& source) {
  const std::unique_ptr<Context> context =
      context_of(log, DeviceFlags::without<"implementation", "deterministic", "off">(flags), file);
  context->set_log(warnings);
  const auto [kinds, batch] = memory_of_training(*context, flags.precision, file, source);
  make_test_nets(*context, flags.precision, file);
  check_snapshot_size(file, kinds.parameters + (file.solver.snapshot_diff() ? kinds.diffs : 0),
                      kinds.history);
  const int64_t largest = largest_batch_in(kinds, batch, free_memory(*context));
  return cat("The training net needs ", size_text(kinds.total()), " on the ",
             name_of(context->device()), " with a batch of ", batch,
             largest > 0 ? cat("; a batch of about ", largest, " would fit") : "");
}

// Prints them, and returns the exit code.
int print_findings(const Findings& findings, const std::string& last_line) {
  for (const Finding& finding : findings)
    std::cout << shown_line(finding, has_colour(STDOUT_FILENO)) << "\n";
  if (!last_line.empty()) std::cout << last_line << "\n";
  std::cout << summary_of(findings) << "\n";
  return has_errors(findings) ? 1 : 0;
}

int run_check(const VerbCall& call, const CheckFlags& flags) {
  if (!flags.target.empty()) {
    const Findings findings = findings_of_target(call.log, flags);
    return print_findings(
        findings, findings.empty() ? cat(flags.target, " takes every layer of ", flags.model) : "");
  }
  require(!flags.solver.empty(), "a solver is needed: -solver SOLVER.prototxt; or a net and the ",
          "reader to check it for: -model NET.prototxt -target NAME");
  const SolverFile file = read_solver_file(flags.solver, std::make_shared<Settings>(flags.set));
  CheckOptions options;
  if (!flags.weights.empty()) options.weights = {flags.weights};
  add_level_and_stages(flags, &options.state);
  Findings findings = check_training(file, options);
  NetSource source = train_source(file);
  source.state.MergeFrom(options.state);
  const NetFile net = open_net(file, source);
  if (!file.solver.has_teacher())
    check_has_loss(CheckedNet(net, net_state(TRAIN, net.net, source.state)), &findings);
  check_snapshot_place(file, &findings);
  add_notes(file.notes, file.path, &findings);
  add_notes(net.upgrade.notes, file.path, &findings);
  file.settings->require_used();

  std::string memory;
  Warnings warnings(file.path);
  if (!has_errors(findings)) {
    try {
      check_momentum(file, warnings);
      memory = memory_line(call.log, flags, warnings, file, source);
    } catch (const Error& error) {
      findings.push_back(finding_of(Severity::error, error.what(), file.path));
    }
  }
  findings.insert(findings.end(), warnings.found.begin(), warnings.found.end());
  tidy(&findings);
  return print_findings(findings, memory);
}

REGISTER_VERB(
    check,
    {.summary = "finds the problems of a training run before it begins",
     .usage = "-solver SOLVER.prototxt [-weights FILES] | -model NET.prototxt -target NAME [flags]",
     .example = "crema check -solver models/lenet/digits_solver.prototxt\n"
                "crema check -model models/mobilenet_v3/train_val.prototxt "
                "-target bvlc",
     .log = LogStyle::brief,
     .run = run_check});

}  // namespace

}  // namespace crema
