// `crema test -model NET.prototxt -weights FILE`: the results of a net over some batches, and their
// means.
#include <iostream>

#include "tools/devices.h"
#include "tools/flags.h"
#include "tools/net_input.h"
#include "tools/random_inputs.h"
#include "tools/verb.h"
#include "tools/weights_flag.h"

namespace crema {

namespace {

void test(ProgramLog& log, Net& net) {
  log.info(cat("Running for ", FLAGS_iterations, " iterations."));
  struct Score {
    std::string blob;
    float loss_weight, sum;
  };
  std::vector<Score> scores;
  float loss = 0;  // float sums, as Caffe adds them: the printed digits agree
  for (int i = 0; i < FLAGS_iterations; ++i) {
    net.forward(i);
    loss += static_cast<float>(net.loss());
    size_t index = 0;
    for (const Net::Output& output : net.outputs()) {
      for (const float value : to_floats(net.context(), output.value)) {
        if (i == 0) scores.push_back({output.blob, output.loss_weight, 0});
        scores[index++].sum += value;
        log.info(cat("Batch ", i, ", ", output.blob, " = ", value));
      }
    }
  }
  const auto batches = static_cast<float>(FLAGS_iterations);
  log.info(cat("Loss: ", loss / batches));
  for (const Score& score : scores) {
    const float mean = score.sum / batches;
    std::string line = cat(score.blob, " = ", mean);
    if (score.loss_weight != 0)
      line += cat(" (* ", score.loss_weight, " = ", score.loss_weight * mean, " loss)");
    log.info(line);
  }
}

int run(const VerbCall& call) {
  require(FLAGS_iterations > 0, "-iterations ", FLAGS_iterations, ": expected a positive number");
  require(!FLAGS_weights.empty(), "weights are needed: -weights FILE.caffemodel");
  const std::unique_ptr<Context> context = make_context(call.log);
  if (context->device() == Device::gpu) {
    call.log.info(cat("Use GPU with device ID ", context->ordinal()));
    call.log.info(cat("GPU device name: ", gpu_name(context->ordinal())));
  } else {
    call.log.info("Use CPU.");
  }
  NetInput input = read_model(call.log, phase_of_flag(TEST));
  input.options.precision = precision_for(*context);
  Net net(*context, input.net, input.options);
  load_weights_of_flag(net);
  fill_random_inputs(net);
  if (FLAGS_dump_plan) std::cout << net.dump_plan();
  test(call.log, net);
  return 0;
}

REGISTER_VERB(
    test, {.summary = "runs a net with trained weights over some batches and prints its results",
           .usage = "-model NET.prototxt -weights FILE [flags]",
           .flags = {"model", "weights", "weights_mode", "iterations", "gpu", "phase", "level",
                     "stage", "batch", "implementation", "precision", "gpu_memory", "tune",
                     "deterministic", "off", "dump_plan"},
           .run = run});

}  // namespace

}  // namespace crema
