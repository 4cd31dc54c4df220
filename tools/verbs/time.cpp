// `crema time -model NET.prototxt`: prints Caffe's table of times by layer, or with -train_step or
// -forward the time of whole training steps or passes of inference; then how close each step of the
// plan comes to the device's peak.
#include <iostream>
#include <optional>

#include "base/error.h"
#include "device/device_scope.h"
#include "device/host_limits.h"
#include "net/records.h"
#include "solver/fields/freeze.h"
#include "tools/devices.h"
#include "tools/flags/net_flags.h"
#include "tools/flags/solver_flags.h"
#include "tools/flags/trained_net.h"
#include "tools/inputs/random_inputs.h"
#include "tools/measure/inference.h"
#include "tools/measure/memory_use.h"
#include "tools/measure/net_times.h"
#include "tools/measure/train_step.h"
#include "tools/verb.h"

namespace crema {

namespace {

using TimeFlags =
    FlagsOf<"engine", "model", "solver", "iterations", "warmup", "train_step", "forward",
            "forward_only", "batch", "json", "assume", "gpu", "threads", "phase", "level", "stage",
            "weights", "implementation", "precision", "gpu_memory", "tune", "deterministic", "off",
            "recompute", "dump_plan", "set">;

// Sums Caffe's times for each layer. A step of several layers counts for the first of them; a
// layout conversion counts for the layer that needs it.
void print_layers(ProgramLog& log, const TimeFlags& flags, const Net& net, const StepTimes& times) {
  std::vector<double> forward(net.graph().net.layer_size()), backward(forward.size());
  double waiting = 0;
  for (const StepTimes::Step& step : times.steps()) {
    waiting += step.forward.sum();
    if (step.members.empty()) continue;
    forward[step.members[0]] += waiting;
    waiting = 0;
  }
  // In backward, the conversion back runs after the layer that needed it.
  int last = -1;
  for (auto step = times.steps().rbegin(); step != times.steps().rend(); ++step) {
    if (!step->members.empty() && step->backward.runs) last = step->members[0];
    if (last >= 0) backward[last] += step->backward.sum();
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

NetTimes time_layers(ProgramLog& log, const TimeFlags& flags, Net& net) {
  log.info("Performing Forward");
  net.forward(0);
  log.info(cat("Initial loss: ", static_cast<float>(net.loss())));
  if (!flags.forward_only) {
    log.info("Performing Backward");
    net.backward();
  }
  StepTimes steps(net, !flags.forward_only);
  for (int i = 1; i < flags.warmup; ++i) steps.run(0);
  tell_fused_layers(log, steps);
  steps.clear();

  log.info("*** Benchmark begins ***");
  log.info(cat("Testing for ", flags.iterations, " iterations."));
  std::vector<double> forward, backward, both;
  for (int i = 0; i < flags.iterations; ++i) {
    const StepTimes::Pass pass = steps.run(i + 1);
    forward.push_back(pass.forward);
    backward.push_back(pass.backward);
    both.push_back(pass.forward + pass.backward);
    log.info(cat("Iteration: ", i + 1, flags.forward_only ? " forward" : " forward-backward",
                 " time: ", both.back(), " ms."));
  }
  NetTimes times;
  times.batch = batch_of(net);
  times.whole = timing_of(both);
  times.forward = timing_of(forward);
  if (!flags.forward_only) times.backward = timing_of(backward);
  print_layers(log, flags, net, steps);
  log.answer(cat("Average Forward pass: ", times.forward.mean, " ms."));
  if (!flags.forward_only) {
    log.answer(cat("Average Backward pass: ", times.backward.mean, " ms."));
    log.answer(cat("Average Forward-Backward: ", times.whole.mean, " ms."));
  }
  log.answer(cat("Total Time: ", times.whole.mean * flags.iterations, " ms."));
  log.answer(cat(flags.forward_only ? "Forward" : "Forward-Backward", ": ",
                 percentiles_text(times.whole)));
  log.info("*** Benchmark ends ***");
  times.steps = steps.steps();
  return times;
}

// The numbers of -batch; 0: what the net says.
std::vector<int> batches_of_flags(const VerbCall& call) {
  const auto given = call.flags.find("batch");
  if (given == call.flags.end()) return {0};
  std::vector<int> batches;
  for (const std::string& number : given->second) batches.push_back(std::stoi(number));
  for (const int batch : batches)
    require(batches.size() == 1 || batch > 0, "-batch ", join(given->second, ","),
            ": expected positive numbers");
  return batches;
}

const char* mode_of(const TimeFlags& flags) {
  return flags.forward        ? "forward"
         : flags.train_step   ? "train_step"
         : flags.forward_only ? "forward_only"
                              : "forward_backward";
}

void check_flags(const TimeFlags& flags) {
  require(flags.iterations > 0, "-iterations ", flags.iterations, ": expected a positive number");
  require(flags.warmup >= 0, "-warmup ", flags.warmup, ": expected 0 or a positive number");
  require(flags.forward + flags.forward_only + flags.train_step <= 1,
          "-forward, -forward_only and -train_step exclude each other: whole passes of inference, "
          "each layer's forward pass, or whole training steps");
  require(flags.solver.empty() || flags.model.empty(),
          "-solver and -model exclude each other: the solver names the net");
  require(flags.solver.empty() || (!flags.forward && flags.phase.empty()),
          flags.forward ? "-forward" : "-phase",
          " and -solver exclude each other: the solver's net is in training");
  require(!flags.json || !flags.dump_plan,
          "-json and -dump_plan: both print on the standard output; give one of them");
  const int processors = usable_processors();
  require(flags.threads >= 0 && flags.threads <= processors, "-threads ", flags.threads,
          ": expected at most ", processors, ", the processors that this process may use, or 0");
}

NetInput input_of(ProgramLog& log, Context& context, const TimeFlags& flags,
                  const std::optional<SolverFile>& solver) {
  if (!solver) {
    NetInput input =
        read_model(log, flags, phase_of_flag(flags.phase, flags.forward ? TEST : TRAIN));
    input.options.histories = flags.train_step ? 1 : 0;
    return input;
  }
  NetInput input = read_trained_net(log, context, flags, *solver);
  set_passes(flags, &input.options);
  if (!flags.train_step) input.options.histories = 0;
  return input;
}

NetTimes time_net(ProgramLog& log, Context& context, const TimeFlags& flags,
                  const std::optional<SolverFile>& solver, TimeResult* result) {
  NetInput input = input_of(log, context, flags, solver);
  input.options.backward = !flags.forward_only && !flags.forward;
  input.options.forward_only = flags.forward;
  input.options.precision = precision_named(result->precision);
  Net net(context, input.net, input.options);
  result->net = net.name();
  result->phase = net.training() ? "TRAIN" : "TEST";
  fill_random_inputs(net);
  if (flags.dump_plan) std::cout << net.dump_plan();
  if (solver) check_frozen_layers(*solver, net);
  if (flags.train_step) return time_train_step(log, flags, net, solver ? &solver->solver : nullptr);
  if (flags.forward) return time_inference(log, flags, net);
  return time_layers(log, flags, net);
}

int run_time(const VerbCall& call, const TimeFlags& flags) {
  check_flags(flags);
  const std::vector<int> batches = batches_of_flags(call);
  if (flags.json) call.log.print_no_answers();
  std::optional<SolverFile> solver;
  if (!flags.solver.empty()) {
    solver = read_solver(call.log, flags);
    train_only(&solver->solver);
  }
  const std::unique_ptr<Context> context =
      solver ? context_of(call.log, flags, *solver) : make_context(call.log, flags);
  if (flags.threads > 0) set_cpu_threads(flags.threads);
  const bool on_gpu = context->device() == Device::gpu;
  if (on_gpu) {
    call.log.info(cat("Use GPU with device ID ", context->ordinal()));
  } else {
    call.log.info("Use CPU.");
  }
  const Precision precision = precision_of_flag(
      *context, flags.precision, solver ? solver->solver.precision() : std::string());
  log_device(call.log, flags, *context, precision);
  TimeResult result;
  result.mode = mode_of(flags);
  result.model = solver ? flags.solver : flags.model;
  result.device = on_gpu ? gpu_name(context->ordinal()) : "CPU";
  result.precision = name_of(precision);
  result.threads = cpu_threads();
  result.warmup = flags.warmup;
  for (const int batch : batches) {
    TimeFlags one = flags;
    one.batch = batch;
    if (!result.nets.empty()) forget_peak();
    result.nets.push_back(time_net(call.log, *context, one, solver, &result));
  }
  // Last, because this takes more memory than small nets, and their peak has been read now.
  result.limits = measure_limits(*context, precision);
  if (flags.json) {
    std::cout << json_of(result) << "\n";
  } else {
    print_times(result);
  }
  log_process_memory(call.log, *context);
  return 0;
}

REGISTER_VERB(
    time,
    {.summary = "measures how long a net's layers, inference or training steps take",
     .usage = "-model NET.prototxt | -solver SOLVER.prototxt [-train_step | -forward | "
              "-forward_only] [flags]",
     .example =
         "crema time -model models/lenet/digits_train_val.prototxt -iterations 20 -train_step\n"
         "crema time -model models/lenet/digits_train_val.prototxt -forward -batch 1,4,16 -json > "
         "times.json",
     .meanings =
         {{"gpu", "The number of the GPU to run on. Empty: the CPU."},
          {"precision",
           "The precision: fp32, tf32, bf16 or fp16. Empty: tf32 on a GPU, fp32 on a CPU."},
          {"solver",
           "Times the net that this solver trains, with what its quantize, teacher and prune add, "
           "and with -train_step its update rule."},
          {"weights",
           "Trained weights (.caffemodel or .caffemodel.h5); separate several with commas."},
          {"iterations", "How many times to run each pass or training step."},
          {"warmup", "How many times to run them before that, untimed."},
          {"batch",
           "Replaces the first dimension of every source of data; several sizes, separated by "
           "commas, are timed one after the other. 0 leaves it."},
          {"threads",
           "The number of CPU threads that compute. 0: one per processor, or OMP_NUM_THREADS."},
          {"json",
           "Prints the results on the standard output, as one JSON object: the device and its "
           "peak, percentiles, each layer's times, work and share of the roofline."}},
     .lists = {"batch"},
     .log = LogStyle::timed,
     .run = run_time});

}  // namespace

}  // namespace crema
