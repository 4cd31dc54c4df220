// `crema report METRICS.jsonl [-model NET.prototxt -weights FILE]`: a page about a training.
#include "base/files.h"
#include "tools/devices.h"
#include "tools/flags.h"
#include "tools/net_input.h"
#include "tools/report_net.h"
#include "tools/verb.h"
#include "tools/weights_flag.h"

namespace crema {

namespace {

int run(const VerbCall& call) {
  require(FLAGS_model.empty() == FLAGS_weights.empty(),
          "filters and misclassified samples need both -model NET.prototxt and -weights FILE");
  Report report;
  report.metrics = read_metrics(call.arguments[0]);
  report.title = call.arguments[0];
  require(!report.metrics.empty(), call.arguments[0],
          ": is empty; `crema train` writes metrics.jsonl beside its snapshots");
  if (!FLAGS_model.empty()) {
    const std::unique_ptr<Context> context = make_context(call.log);
    NetInput input = read_model(call.log, TEST);
    input.options.keep_blobs = true;
    context->set_log(silent_log());
    Net net(*context, input.net, input.options);
    load_weights_of_flag(net);
    report.title = net.name().empty() ? FLAGS_model : net.name();
    add_filters(net, &report);
    add_mistakes(net, FLAGS_iterations, &report);
  }
  write_file_atomically(FLAGS_output, report_page(report));
  call.log.info("Wrote " + FLAGS_output);
  return 0;
}

REGISTER_VERB(report,
              {.summary = "writes a page with the curves, filters and mistakes of a training",
               .usage = "METRICS.jsonl [-model NET.prototxt -weights FILE] [flags]",
               .flags = {"output", "model", "weights", "weights_mode", "iterations", "gpu", "level",
                         "stage"},
               .least_arguments = 1,
               .most_arguments = 1,
               .run = run});

}  // namespace

}  // namespace crema
