// `crema lr_find -solver SOLVER.prototxt`: raises the learning rate until the loss diverges, and
// proposes one.
#include <cmath>
#include <cstdio>
#include <iostream>

#include "base/files.h"
#include "net/records.h"
#include "solver/readers/rate_search.h"
#include "solver/solver.h"
#include "tools/flags/net_flags.h"
#include "tools/flags/shell_words.h"
#include "tools/flags/solver_flags.h"
#include "tools/pages/charts/standalone_chart.h"
#include "tools/runs/status_reader.h"
#include "tools/tune/warnings_only.h"
#include "tools/verb.h"

namespace crema {

namespace {

using LrFindFlags = FlagsOf<"solver", "start_lr", "end_lr", "iterations", "output", "gpu",
                            "weights", "weights_mode", "level", "stage", "implementation",
                            "precision", "gpu_memory", "tune", "deterministic", "off", "set">;

constexpr int kIterations = 100;

int iterations_of_search(const LrFindFlags& flags) {
  if (!flags.iterations_given) return kIterations;
  require(flags.iterations >= 20, "-iterations ", flags.iterations,
          ": expected at least 20, so that there is a curve");
  return flags.iterations;
}

// The same training, with a rate that rises by a constant factor, and nothing tested or kept.
void raise_rate(const LrFindFlags& flags, int iterations, SolverParameter* solver) {
  solver->set_lr_policy("exp");
  solver->set_base_lr(static_cast<float>(flags.start_lr));
  solver->set_gamma(static_cast<float>(
      std::pow(flags.end_lr / flags.start_lr, 1.0 / static_cast<double>(iterations - 1))));
  solver->set_max_iter(iterations);
  solver->clear_max_epoch();
  solver->set_display(1);
  solver->set_average_loss(1);
  solver->set_on_divergence(SolverParameter::IGNORE);
  solver->clear_min_lr();
  solver->clear_warmup_iter();
  solver->clear_warmup_epoch();
  solver->clear_stepsize_epoch();
  solver->clear_stepvalue_epoch();
  solver->clear_rampup_interval();
  solver->clear_plateau_winsize();
  train_only(solver);
}

std::string rate_text(double rate) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2g", rate);
  return text;
}

std::string loss_text(double loss) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", loss);
  return text;
}

// "NAME.svg" and "NAME.csv".
std::string name_of_output(const std::string& output) {
  const std::string given = output.empty() ? "lr_find.svg" : output;
  require(ends_with(given, ".svg") && given.size() > 4, "-output ", given,
          ": expected NAME.svg, for the plot; the values go next to it, as NAME.csv");
  return given.substr(0, given.size() - 4);
}

std::string csv_of_points(const std::vector<RatePoint>& points) {
  std::string csv = "iteration,lr,loss,smoothed\n";
  for (size_t i = 0; i < points.size(); ++i)
    csv += cat(i, ",", points[i].rate, ",", points[i].loss, ",", points[i].smoothed, "\n");
  return csv;
}

std::string plot_of(const std::string& net, const std::vector<RatePoint>& points,
                    const RateProposal& found) {
  StandaloneChart chart;
  chart.title = cat("Loss while the learning rate rises", net.empty() ? "" : ": " + net);
  chart.x_name = "learning rate";
  chart.y_name = "loss";
  double highest = points[0].smoothed;
  for (const RatePoint& point : points) {
    if (std::isfinite(point.loss)) chart.points.emplace_back(point.rate, point.loss);
    chart.curve.emplace_back(point.rate, point.smoothed);
    if (point.rate <= found.minimum) highest = std::max(highest, point.smoothed);
  }
  // Points after the divergence would flatten the rest.
  const double margin = std::max(0.2 * (highest - found.loss), 0.01 * std::abs(highest) + 1e-6);
  chart.y_low = found.loss - margin;
  chart.y_high = highest + 1.5 * margin;
  if (found.loss >= 0) chart.y_low = std::max(0.0, chart.y_low);
  chart.marks.push_back({found.minimum, "minimum " + rate_text(found.minimum)});
  if (found.steepest > 0)
    chart.marks.push_back({found.steepest, "steepest fall " + rate_text(found.steepest)});
  if (found.proposed > 0)
    chart.marks.push_back({found.proposed, "proposed " + rate_text(found.proposed)});
  return standalone_chart(chart);
}

std::string command_with(const LrFindFlags& flags, double rate) {
  std::string command = "crema train -solver " + shell_quoted(flags.solver);
  for (const std::string& setting : flags.set) command += " -set " + shell_quoted(setting);
  return cat(command, " -set base_lr=", rate_text(rate));
}

void print_findings(const LrFindFlags& flags, const RateSearch& search, const RateProposal& found) {
  const std::vector<RatePoint>& points = search.points();
  std::cout << "The loss was " << loss_text(points[0].loss) << " at a rate of "
            << rate_text(points[0].rate);
  if (found.steepest > 0) std::cout << ", fell fastest at " << rate_text(found.steepest);
  std::cout << ", was smallest (" << loss_text(found.loss) << ") at " << rate_text(found.minimum)
            << (search.diverged() ? " and had diverged at " : " and did not diverge until ")
            << rate_text(points.back().rate) << ".\n";
  if (found.proposed == 0) {
    std::cout << "It fell by no more than it varies between batches, so there is nothing to "
                 "propose: try more -iterations, a larger batch or another range (-start_lr, "
                 "-end_lr), or check whether the net can train at all (`crema check`).\n";
    return;
  }
  std::cout << "Proposed: base_lr " << rate_text(found.proposed)
            << ", a tenth of the rate at the minimum; anything from there to the steepest fall "
               "usually learns.\n";
  if (found.at_end && !search.diverged())
    std::cout << "The loss was still falling at the end: a larger -end_lr may show more.\n";
  if (found.proposed < flags.start_lr)
    std::cout << "It is smaller than every rate tried: use a smaller -start_lr to test it.\n";
  std::cout << "Use it: " << command_with(flags, found.proposed) << "\n";
}

int run_lr_find(const VerbCall& call, const LrFindFlags& flags) {
  ProgramLog& log = call.log;
  require(flags.start_lr > 0 && flags.start_lr < flags.end_lr && std::isfinite(flags.end_lr),
          "-start_lr ", flags.start_lr, " -end_lr ", flags.end_lr,
          ": expected two positive rates, the first smaller than the second");
  const int iterations = iterations_of_search(flags);
  const std::string name = name_of_output(flags.output);
  SolverFile file = read_solver(log, flags);
  raise_rate(flags, iterations, &file.solver);
  const std::unique_ptr<Context> context = context_of(log, flags, file);
  SolverOptions options;
  if (!flags.weights.empty()) options.weights = {flags.weights};
  options.weights_mode = weights_mode_of_flag(flags.weights_mode);
  options.level = flags.level;
  options.stages = split(flags.stage, ',');
  set_passes(PassFlags::without<"recompute">(flags), &options.net);
  options.net.precision = precision_of_flag(*context, flags.precision, file.solver.precision());
  log_device(log, flags, *context, options.net.precision);

  RateSearch search;
  StatusReader status(log);
  options.readers = {&search};
  if (log.has_terminal()) options.readers.push_back(&status);
  options.action = [&search] { return search.diverged() ? Action::stop : Action::none; };
  log.info(cat("Raising the learning rate from ", flags.start_lr, " to ", flags.end_lr, " in ",
               iterations, " iterations; this run keeps no files."));
  WarningsOnly warnings(log);
  context->set_log(warnings);
  Solver solver(*context, file, options);
  status.set_sizes(batch_of(solver.net()) * file.solver.iter_size(), records_of(solver.net()));
  solver.step(iterations);
  log.show_status("");

  std::vector<RatePoint> points = search.points();
  const RateProposal found = rate_proposal(&points);
  write_file_atomically(name + ".csv", csv_of_points(points));
  write_file_atomically(name + ".svg", plot_of(solver.net().name(), points, found));
  log.info(cat("Wrote ", name, ".svg and ", name, ".csv"));
  print_findings(flags, search, found);
  return 0;
}

REGISTER_VERB(
    lr_find,
    {.summary = "proposes a learning rate: raises it until the loss diverges",
     .usage = "-solver SOLVER.prototxt [-output PLOT.svg] [flags]",
     .example = "crema lr_find -solver models/lenet/digits_solver.prototxt -output plot.svg",
     .meanings = {{"iterations", "The number of iterations from -start_lr to -end_lr."},
                  {"output",
                   "The plot to write; a CSV table goes next to it. Empty: lr_find.svg."}},
     .log = LogStyle::brief,
     .run = run_lr_find});

}  // namespace

}  // namespace crema
