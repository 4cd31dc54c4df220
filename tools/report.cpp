// `crema report METRICS.jsonl [-run_id ID] [-model NET.prototxt -weights FILE]`: writes a page
// about a training run.
#include <optional>

#include "base/files.h"
#include "net/prototxt/prototxt.h"
#include "tools/devices.h"
#include "tools/flags.h"
#include "tools/model_flag.h"
#include "tools/pages/report_net.h"
#include "tools/pages/report_run.h"
#include "tools/verb.h"
#include "tools/weights_flag.h"

namespace crema {

namespace {

// 0: all.
int batches_of_flag() {
  return gflags::GetCommandLineFlagInfoOrDie("iterations").is_default ? 0 : FLAGS_iterations;
}

int run_report(const VerbCall& call) {
  require(FLAGS_model.empty() == FLAGS_weights.empty(),
          "filters and misclassified samples need both -model NET.prototxt and -weights FILE");
  const std::string& path = call.arguments[0];
  const std::vector<Run> runs = read_runs(path);
  require(!runs.empty(), path,
          ": is empty; `crema train` writes metrics.jsonl beside its snapshots");
  Report report;
  report.title = path;
  const std::unique_ptr<Context> context = make_context(call.log);
  std::unique_ptr<Net> net;
  std::optional<Trained> trained;
  if (!FLAGS_model.empty()) {
    NetInput input = read_model(call.log, TEST);
    input.options.keep_blobs = true;
    context->set_log(silent_log());
    net = std::make_unique<Net>(*context, input.net, input.options);
    load_weights_of_flag(*net);
    trained = trained_of(*net, read_net_file(FLAGS_model).net);
    report.title = net->name().empty() ? FLAGS_model : net->name();
  }
  if (runs.size() > 1) print_runs(runs);
  const ChosenRun chosen = choose_run(runs, FLAGS_run_id, trained ? &*trained : nullptr, path);
  report.metrics = chosen.run.metrics;
  report.run = cat("Run ", chosen.run.id, chosen.why.empty() ? "" : " (" + chosen.why + ")");
  if (const std::string what = describe(chosen.run); !what.empty()) report.run += ": " + what;
  report.notes = chosen.notes;
  call.log.info(report.run);
  for (const std::string& note : report.notes) call.log.warning(note);
  if (net) {
    add_filters(*net, &report);
    add_mistakes(*net, batches_of_flag(), &report);
  }
  const std::string output = FLAGS_output.empty() ? "report.html" : FLAGS_output;
  write_file_atomically(output, report_page(report));
  call.log.info("Wrote " + output);
  return 0;
}

REGISTER_VERB(report,
              {.summary = "writes a page with the curves, filters and mistakes of a training",
               .usage = "METRICS.jsonl [-model NET.prototxt -weights FILE] [flags]",
               .flags = {"output", "run_id", "model", "weights", "weights_mode", "iterations",
                         "gpu", "level", "stage"},
               .min_arguments = 1,
               .max_arguments = 1,
               .run = run_report});

}  // namespace

}  // namespace crema
