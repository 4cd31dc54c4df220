// `crema time -model NET.prototxt`: prints Caffe's table of times by layer, and how close each step
// of the plan comes to the device's peak; with -train_step or -forward the time of whole training steps
// or passes of inference.
#include <cmath>
#include <cstdio>
#include <iostream>

#include "tools/console/table.h"
#include "tools/devices.h"
#include "tools/flags/net_flags.h"
#include "tools/inputs/random_inputs.h"
#include "tools/measure/inference.h"
#include "tools/measure/limits.h"
#include "tools/measure/step_times.h"
#include "tools/measure/train_step.h"
#include "tools/verb.h"

namespace crema {

namespace {

using TimeFlags =
    FlagsOf<"engine", "model", "iterations", "train_step", "forward", "forward_only", "batch",
            "assume", "gpu", "phase", "level", "stage", "weights", "implementation", "precision",
            "gpu_memory", "tune", "deterministic", "off", "recompute", "dump_plan", "set">;

// Sums Caffe's times for each layer. A step of several layers counts for the first of them; a
// layout conversion counts for the layer that needs it.
void print_layers(ProgramLog& log, const TimeFlags& flags, const Net& net, const StepTimes& times) {
  std::vector<double> forward(net.graph().net.layer_size()), backward(forward.size());
  double waiting = 0;
  for (const StepTimes::Step& step : times.steps()) {
    waiting += step.forward.milliseconds;
    if (step.members.empty()) continue;
    forward[step.members[0]] += waiting;
    waiting = 0;
  }
  // In backward, the conversion back runs after the layer that needed it.
  int last = -1;
  for (auto step = times.steps().rbegin(); step != times.steps().rend(); ++step) {
    if (!step->members.empty() && step->backward.runs) last = step->members[0];
    if (last >= 0) backward[last] += step->backward.milliseconds;
  }
  log.answer("Average time per layer: ");
  for (int i = 0; i < net.graph().net.layer_size(); ++i) {
    const std::string& name = net.graph().net.layer(i).name();
    const std::string padded = std::string(name.size() < 10 ? 10 - name.size() : 0, ' ') + name;
    log.answer(cat(padded, "\tforward: ", forward[i] / flags.iterations, " ms."));
    if (!flags.forward_only)
      log.answer(cat(padded, "\tbackward: ", backward[i] / flags.iterations, " ms."));
  }
}

// Logs which layers are fused into one step: their rows show 0, so this says where their time went.
void tell_fused_layers(ProgramLog& log, const StepTimes& times) {
  std::vector<std::string> fused;
  for (const StepTimes::Step& step : times.steps()) {
    if (step.members.size() > 1) fused.push_back(step.name);
  }
  if (!fused.empty())
    log.answer(cat("Fused layers, timed in the row of the first: ", join(fused, "; ")));
}

std::string shown_number(double number) {
  char text[32];
  std::snprintf(text, sizeof text,
                number < 0.0995 ? "%.3f"
                : number < 9.95 ? "%.2f"
                                : "%.1f",
                number);
  return text;
}

// Time, operations and bytes per second, and their shares of the device's peak.
void add_cells(const StepTimes::Side& side, int iterations, const Limits& limits,
               std::vector<std::string>* row) {
  const double seconds = 1e-3 * side.milliseconds / iterations;
  const auto add_rate = [&](double amount, double unit, double maximum) {
    const bool shown = side.runs && amount > 0 && seconds > 0;
    row->push_back(shown ? shown_number(amount / seconds / unit) : "");
    row->push_back(shown ? cat(std::lround(100 * amount / seconds / maximum), "%") : "");
  };
  row->push_back(side.runs ? shown_number(1e3 * seconds) : "");
  add_rate(side.work.operations, 1e12, limits.operations);
  add_rate(side.work.bytes, 1e9, limits.bytes);
}

void print_steps(Net& net, int iterations, const StepTimes& times) {
  const Precision precision = net.options().precision;
  const Limits limits = measure_limits(net.context(), precision);
  std::cout << "\nThe steps of the plan, and their percentage of this device's measured peak: "
            << shown_number(limits.operations / 1e12) << " TFLOP/s (a product of matrices in "
            << name_of(precision) << ") and " << shown_number(limits.bytes / 1e9)
            << " GB/s (a sum of vectors)\n";
  std::vector<std::vector<std::string>> rows = {{"layers", "forward ms", "TFLOP/s", "", "GB/s", "",
                                                 "backward ms", "TFLOP/s", "", "GB/s", ""}};
  const auto add = [](StepTimes::Side* sum, const StepTimes::Side& side) {
    sum->runs |= side.runs;
    sum->milliseconds += side.milliseconds;
    sum->work.operations += side.work.operations;
    sum->work.bytes += side.work.bytes;
  };
  const auto add_row = [&](const StepTimes::Step& step) {
    rows.push_back({step.name});
    add_cells(step.forward, iterations, limits, &rows.back());
    add_cells(step.backward, iterations, limits, &rows.back());
  };
  StepTimes::Step all{"all", {}, {}, {}};
  for (const StepTimes::Step& step : times.steps()) {
    add_row(step);
    add(&all.forward, step.forward);
    add(&all.backward, step.backward);
  }
  add_row(all);
  print_table(rows, 1);
}

void time_layers(ProgramLog& log, const TimeFlags& flags, Net& net) {
  log.info("Performing Forward");
  net.forward(0);
  log.info(cat("Initial loss: ", static_cast<float>(net.loss())));
  if (!flags.forward_only) {
    log.info("Performing Backward");
    net.backward();
  }
  StepTimes times(net, !flags.forward_only);
  times.run(0);
  times.clear();
  tell_fused_layers(log, times);

  log.info("*** Benchmark begins ***");
  log.info(cat("Testing for ", flags.iterations, " iterations."));
  StepTimes::Pass sums{0, 0};
  for (int i = 0; i < flags.iterations; ++i) {
    const StepTimes::Pass pass = times.run(i + 1);
    sums.forward += pass.forward;
    sums.backward += pass.backward;
    log.info(cat("Iteration: ", i + 1, flags.forward_only ? " forward" : " forward-backward",
                 " time: ", pass.forward + pass.backward, " ms."));
  }
  const double total = sums.forward + sums.backward;
  print_layers(log, flags, net, times);
  log.answer(cat("Average Forward pass: ", sums.forward / flags.iterations, " ms."));
  if (!flags.forward_only) {
    log.answer(cat("Average Backward pass: ", sums.backward / flags.iterations, " ms."));
    log.answer(cat("Average Forward-Backward: ", total / flags.iterations, " ms."));
  }
  log.answer(cat("Total Time: ", total, " ms."));
  log.info("*** Benchmark ends ***");
  print_steps(net, flags.iterations, times);
}

int run_time(const VerbCall& call, const TimeFlags& flags) {
  require(flags.iterations > 0, "-iterations ", flags.iterations, ": expected a positive number");
  require(flags.forward + flags.forward_only + flags.train_step <= 1,
          "-forward, -forward_only and -train_step exclude each other: whole passes of inference, "
          "each layer's forward pass, or whole training steps");
  const std::unique_ptr<Context> context = make_context(call.log, flags);
  if (context->device() == Device::gpu) {
    call.log.info(cat("Use GPU with device ID ", context->ordinal()));
  } else {
    call.log.info("Use CPU.");
  }
  const Precision precision = precision_of_flag(*context, flags.precision);
  log_device(call.log, flags, *context, precision);
  NetInput input =
      read_model(call.log, flags, phase_of_flag(flags.phase, flags.forward ? TEST : TRAIN));
  input.options.backward = !flags.forward_only && !flags.forward;
  input.options.forward_only = flags.forward;
  input.options.histories = flags.train_step ? 1 : 0;
  input.options.precision = precision;
  Net net(*context, input.net, input.options);
  fill_random_inputs(net);
  if (flags.dump_plan) std::cout << net.dump_plan();
  if (flags.train_step) {
    time_train_step(call.log, flags, net);
  } else if (flags.forward) {
    time_inference(call.log, flags, net);
  } else {
    time_layers(call.log, flags, net);
  }
  log_process_memory(call.log, *context);
  return 0;
}

REGISTER_VERB(
    time,
    {.summary = "measures how long a net's layers, inference or training steps take",
     .usage = "-model NET.prototxt [-train_step | -forward | -forward_only] [flags]",
     .example =
         "crema time -model models/lenet/digits_train_val.prototxt -iterations 20 -train_step",
     .meanings =
         {{"gpu", "The number of the GPU to run on. Empty: the CPU."},
          {"precision",
           "The precision: fp32, tf32, bf16 or fp16. Empty: tf32 on a GPU, fp32 on a CPU."},
          {"weights",
           "Trained weights (.caffemodel or .caffemodel.h5); separate several with commas."},
          {"iterations", "How many times to run each pass or training step."}},
     .log = LogStyle::timed,
     .run = run_time});

}  // namespace

}  // namespace crema
