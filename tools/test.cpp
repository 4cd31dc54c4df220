// `crema test -model NET.prototxt -weights FILE`: prints the results of a net over some batches,
// and their means.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <optional>

#include "net/records.h"
#include "proto/solver.pb.h"
#include "solver/class_metrics.h"
#include "solver/not_finite.h"
#include "solver/test_scores.h"
#include "tools/devices.h"
#include "tools/flags.h"
#include "tools/model_flag.h"
#include "tools/random_inputs.h"
#include "tools/verb.h"
#include "tools/weights_flag.h"

namespace crema {

namespace {

// Reports where a batch's results became NaN or infinite.
class NumberCheck {
 public:
  explicit NumberCheck(Net& net) : net_(net) {}

  void look(int batch, double loss, const std::vector<OutputValue>& values) {
    const auto finite = [](const OutputValue& output) { return std::isfinite(output.value); };
    if (!message_.empty() ||
        (std::isfinite(loss) && std::all_of(values.begin(), values.end(), finite)))
      return;
    const auto found = first_not_finite(net_, batch);
    message_ = cat("the results of batch ", batch, " are not finite. ",
                   found ? cat("It begins in ", found->text())
                         : "With the same data again all blobs are finite");
  }
  void report() const {
    if (!message_.empty()) fail(message_);
  }

 private:
  Net& net_;
  std::string message_;
};

// The number of batches to run.
int batches_of_flags(Net& net) {
  if (!FLAGS_epoch) return FLAGS_iterations;
  try {
    return static_cast<int>(check_whole_epochs(net).batches);
  } catch (const DeviceLost&) {
    throw;
  } catch (const Error& error) {
    fail("-epoch: ", error.what());
  }
}

void test(ProgramLog& log, Net& net, const std::vector<std::string>& asked) {
  const int iterations = batches_of_flags(net);
  log.info(cat("Running for ", iterations, " iterations."));
  TestScores scores(SolverParameter(), net);
  std::optional<ClassMetrics> metrics;
  if (!asked.empty()) metrics.emplace(net, asked);
  NumberCheck check(net);
  double loss = 0;
  int64_t tested = 0;
  for (int i = 0; i < iterations; ++i) {
    const int64_t records = FLAGS_epoch ? records_in(net, i) : 1;
    net.forward(i);
    const double of_batch = net.loss();
    // Else summed in float as in Caffe, so that the printed digits agree.
    loss = FLAGS_epoch ? loss + static_cast<double>(records) * of_batch
                       : static_cast<float>(loss) + static_cast<float>(of_batch);
    tested += records;
    scores.add(records);
    if (metrics) metrics->add();
    const std::vector<OutputValue> values = values_of(net);
    for (const OutputValue& output : values)
      log.info(cat("Batch ", i, ", ", output.name, " = ", output.value));
    check.look(i, of_batch, values);
  }
  log.info(cat("Loss: ", static_cast<float>(loss) / static_cast<float>(tested)));
  for (const OutputValue& mean : scores.outputs()) {
    std::string line = cat(mean.name, " = ", mean.value);
    if (mean.loss_weight != 0)
      line += cat(" (* ", mean.loss_weight, " = ", mean.loss_weight * mean.value, " loss)");
    log.info(line);
  }
  if (metrics) {
    for (const OutputValue& value : metrics->outputs())
      log.info(cat(value.name, " = ", value.value));
    if (const auto confusion = metrics->confusion("confusion.csv")) {
      for (const std::string& line : lines_of(*confusion)) log.info(line);
    }
  }
  check.report();
}

int run_test(const VerbCall& call) {
  require(FLAGS_iterations > 0, "-iterations ", FLAGS_iterations, ": expected a positive number");
  require(!FLAGS_epoch || call.given.count("iterations") == 0, "-epoch and -iterations ",
          FLAGS_iterations,
          ": a test is one pass over the data, or so many batches; give one of them");
  require(!FLAGS_weights.empty(), "weights are needed: -weights FILE.caffemodel");
  const std::vector<std::string> asked = parse_class_metrics(FLAGS_metrics);
  const std::unique_ptr<Context> context = make_context(call.log);
  if (context->device() == Device::gpu) {
    call.log.info(cat("Use GPU with device ID ", context->ordinal()));
    call.log.info(cat("GPU device name: ", gpu_name(context->ordinal())));
  } else {
    call.log.info("Use CPU.");
  }
  const Precision precision = precision_of_flag(*context);
  log_device(call.log, *context, precision);
  NetInput input = read_model(call.log, phase_of_flag(TEST));
  input.options.precision = precision;
  input.options.keep_blobs = input.options.keep_blobs || !asked.empty();
  input.options.whole_epochs = FLAGS_epoch;
  Net net(*context, input.net, input.options);
  load_weights_of_flag(net);
  fill_random_inputs(net);
  const std::vector<std::string> inputs = random_inputs_of(net);
  if (!inputs.empty()) {
    call.log.warning(cat("Random numbers as ", join(inputs, ", "),
                         ": the net reads no data there, so what follows shows that it runs, not "
                         "how good it is"));
  }
  if (FLAGS_dump_plan) std::cout << net.dump_plan();
  test(call.log, net, asked);
  return 0;
}

REGISTER_VERB(
    test, {.summary = "runs a net with trained weights over some batches and prints its results",
           .usage = "-model NET.prototxt -weights FILE [flags]",
           .flags = {"model",     "weights",    "weights_mode", "iterations",
                     "epoch",     "gpu",        "phase",        "level",
                     "stage",     "batch",      "assume",       "implementation",
                     "precision", "gpu_memory", "tune",         "deterministic",
                     "off",       "dump_plan",  "set",          "metrics"},
           .run = run_test});

}  // namespace

}  // namespace crema
