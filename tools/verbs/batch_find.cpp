// `crema batch_find -solver SOLVER.prototxt`: the largest batch that fits into memory, and the
// fastest.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>

#include "base/visible.h"
#include "solver/check/check.h"
#include "tools/console/table.h"
#include "tools/flags/net_flags.h"
#include "tools/flags/solver_flags.h"
#include "tools/tune/batch_trials.h"
#include "tools/tune/warnings_only.h"
#include "tools/verb.h"

namespace crema {

namespace {

using BatchFindFlags =
    FlagsOf<"solver", "model", "assume", "iterations", "level", "stage", "gpu", "implementation",
            "precision", "gpu_memory", "tune", "deterministic", "off", "recompute", "set">;

constexpr int64_t largest_tried = int64_t{1} << 24;
constexpr double longest_iteration = 1;  // seconds; no larger batch is timed
constexpr double longest_trial = 4;  // expected seconds of an iteration; no larger batch is tried
constexpr double worth = 0.95;       // of the best speed: a smaller batch is as good
constexpr int in_vain = 3;           // doublings without more speed, after which none is timed

// Losses of random data or of a rate that suits another batch do not matter here.
void never_stop(SolverParameter* solver) {
  train_only(solver);
  solver->set_on_divergence(SolverParameter::IGNORE);
  solver->set_display(0);
  solver->set_max_iter(1000000);
  solver->clear_max_epoch();
}

std::string three_digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value < 9.95 ? "%.2f" : value < 99.5 ? "%.1f" : "%.0f", value);
  return text;
}

// The batches in ascending order, until there is no use in larger ones.
std::vector<BatchTrial> time_batches(ProgramLog& log, BatchTrials& trials) {
  std::vector<BatchTrial> all;
  double best = 0;
  int without_gain = 0;
  for (const int64_t batch : batches_to_time(trials.own_batch(), largest_tried)) {
    log.show_status(cat("batch ", batch));
    all.push_back(trials.run(batch, true));
    const BatchTrial& last = all.back();
    log.info(cat("Batch ", batch, ": ",
                 last.fits ? cat(three_digits(last.speed()), " samples/s") : "does not fit"));
    if (!last.fits || last.seconds > longest_iteration) break;
    without_gain = last.speed() > best / worth ? 0 : without_gain + 1;
    best = std::max(best, last.speed());
    // The next one takes about twice as much.
    if (last.memory.total() + last.memory.blobs > trials.available()) break;
    if (without_gain >= in_vain && batch > trials.own_batch()) break;
  }
  return all;
}

// The largest batch that fits, between those that did and the memory's estimate; tried unless an
// iteration would take too long.
BatchTrial find_largest(ProgramLog& log, BatchTrials& trials,
                        const std::vector<BatchTrial>& timed) {
  int64_t too_large = largest_tried + 1;
  BatchTrial largest = timed.front();
  for (const BatchTrial& trial : timed) {
    if (trial.fits) {
      largest = trial;
    } else {
      too_large = std::min(too_large, trial.batch);
    }
  }
  const double seconds_of_one = largest.seconds / static_cast<double>(largest.batch);
  int64_t next = largest_batch_in(largest.memory, largest.batch, trials.available());
  while (too_large - largest.batch > std::max<int64_t>(1, largest.batch / 50)) {
    next = std::min(next, too_large - 1);
    if (next <= largest.batch) break;
    if (seconds_of_one * static_cast<double>(next) > longest_trial) {
      largest.batch = next;
      largest.seconds = 0;  // not tried
      return largest;
    }
    log.show_status(cat("batch ", next));
    const BatchTrial trial = trials.run(next, false);
    if (trial.fits) {
      largest = trial;
      largest.seconds = seconds_of_one * static_cast<double>(trial.batch);
      next = largest_batch_in(trial.memory, trial.batch, trials.available());
    } else {
      too_large = next;
      next = (largest.batch + next) / 2;
    }
  }
  return largest;
}

void print_trials(const std::vector<BatchTrial>& timed, int64_t own) {
  std::vector<std::vector<std::string>> rows = {
      {"batch", "ms an iteration", "samples/s", "waiting for data", "memory", ""}};
  for (const BatchTrial& trial : timed) {
    if (!trial.fits) {
      rows.push_back({cat(trial.batch), "", "", "", "", "does not fit"});
      continue;
    }
    const double waiting = 100 * trial.waited / trial.seconds;
    rows.push_back({cat(trial.batch), three_digits(1e3 * trial.seconds),
                    three_digits(trial.speed()), cat(std::lround(std::max(0.0, waiting)), " %"),
                    size_text(trial.memory.total()),
                    trial.batch == own ? "as the net has it" : ""});
  }
  print_table(rows, 0);
}

// The smallest that is about as fast as the fastest.
const BatchTrial& fastest_of(const std::vector<BatchTrial>& timed) {
  double best = 0;
  for (const BatchTrial& trial : timed) best = std::max(best, trial.speed());
  for (const BatchTrial& trial : timed) {
    if (trial.speed() >= worth * best) return trial;
  }
  return timed.front();
}

void print_use(const BatchTrials& trials, int64_t batch) {
  std::vector<std::string> words;
  for (const std::string& setting : trials.settings())
    words.push_back(cat("-set '", setting, "=", batch, "'"));
  if (!words.empty()) std::cout << "Use it: " << visible(join(words, " ")) << "\n";
  for (const std::string& layer : trials.others())
    std::cout << "In layer \"" << visible(layer)
              << "\" the first dim of each shape is the batch.\n";
  if (batch != trials.own_batch()) {
    std::cout << "With another batch another base_lr is right: "
              << three_digits(1.0 * batch / trials.own_batch()) << " times the one for "
              << trials.own_batch() << " is a first guess; `crema lr_find` measures it.\n";
  }
}

int run_batch_find(const VerbCall& call, const BatchFindFlags& flags) {
  ProgramLog& log = call.log;
  require(flags.iterations > 0, "-iterations ", flags.iterations, ": expected a positive number");
  SolverFile file = read_solver_or_model(
      log, flags, "nothing to train: give -solver SOLVER.prototxt or -model NET.prototxt");
  never_stop(&file.solver);
  const std::unique_ptr<Context> context = context_of(log, flags, file);
  log_device(log, flags, *context,
             precision_of_flag(*context, flags.precision, file.solver.precision()));
  WarningsOnly warnings(log);
  context->set_log(warnings);
  BatchTrials trials(log, *context, BatchTrialFlags::without<"batch">(flags), file);
  trials.run(0, false);  // as it is: errors are those of the training
  context->set_log(silent_log());

  const std::vector<BatchTrial> timed = time_batches(log, trials);
  require(timed.front().fits, "no batch fits: ", timed.front().problem);
  const BatchTrial largest = find_largest(log, trials, timed);
  log.show_status("");
  print_trials(timed, trials.own_batch());
  const BatchTrial& fastest = fastest_of(timed);
  std::cout << "\nLargest batch: " << largest.batch
            << (largest.seconds > 0 ? ", as a trial showed; "
                                    : ", judging by the memory of smaller ones; ")
            << size_text(trials.available()) << " are available"
            << (context->device() == Device::cpu ? ", leaving a fifth of the free memory to others"
                                                 : "")
            << ".\n"
            << "Fastest batch: " << fastest.batch << ", " << three_digits(fastest.speed())
            << " samples/s; larger ones gain less than 5 %.\n";
  print_use(trials, fastest.batch);
  return 0;
}

REGISTER_VERB(
    batch_find,
    {.summary = "finds the largest batch that fits, and the fastest one",
     .usage = "-solver SOLVER.prototxt | -model NET.prototxt [flags]",
     .example = "crema batch_find -solver models/lenet/digits_solver.prototxt",
     .meanings =
         {{"model",
           "The net to measure with a default solver, instead of -solver: a prototxt file."},
          {"iterations", "The number of iterations to time for each batch."}},
     .log = LogStyle::brief,
     .run = run_batch_find});

}  // namespace

}  // namespace crema
