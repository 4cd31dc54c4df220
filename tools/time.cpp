// `crema time -model NET.prototxt`: Caffe's table of times by layer; with -train_step the time of
// whole training steps.
#include <chrono>
#include <cstdio>
#include <iomanip>
#include <iostream>

#include "tools/devices.h"
#include "tools/flags.h"
#include "tools/net_input.h"
#include "tools/random_inputs.h"
#include "tools/train_step.h"
#include "tools/verb.h"

namespace crema {

namespace {

using Clock = std::chrono::steady_clock;

double milliseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

// Adds up the time of each layer. A step of the plan that stands for several layers counts for the
// first of them; one that only changes a layout counts for the layer that needs it.
class LayerTimes {
 public:
  LayerTimes(Net& net, Context& context) : net_(net), context_(context) {
    forward.resize(net.graph().net.layer_size());
    backward.resize(forward.size());
    net.set_observer([this](const Net::StepInfo& step, bool begin) { observe(step, begin); });
  }
  ~LayerTimes() { net_.set_observer({}); }
  LayerTimes(const LayerTimes&) = delete;
  LayerTimes& operator=(const LayerTimes&) = delete;

  std::vector<double> forward, backward;  // milliseconds in all
  std::vector<std::string> joined;        // "relu1 ran inside conv1"

 private:
  void observe(const Net::StepInfo& step, bool begin) {
    context_.synchronize();
    if (begin) {
      begin_ = Clock::now();
      return;
    }
    const double time = milliseconds(Clock::now() - begin_);
    const std::vector<int>& members = step.node->members;
    if (step.backward) {
      // Backward, the layout changes back after the layer that needed it has run.
      if (!members.empty()) last_ = members[0];
      if (last_ >= 0) backward[last_] += time;
    } else if (members.empty()) {
      waiting_ += time;
    } else {
      forward[members[0]] += time + waiting_;
      waiting_ = 0;
    }
  }

  Net& net_;
  Context& context_;
  Clock::time_point begin_;
  double waiting_ = 0;
  int last_ = -1;
};

void print_table(ProgramLog& log, const Net& net, const LayerTimes& times, int iterations) {
  log.info("Average time per layer: ");
  for (int i = 0; i < net.graph().net.layer_size(); ++i) {
    const std::string& name = net.graph().net.layer(i).name();
    const std::string padded = std::string(name.size() < 10 ? 10 - name.size() : 0, ' ') + name;
    log.info(cat(padded, "\tforward: ", times.forward[i] / iterations, " ms."));
    log.info(cat(padded, "\tbackward: ", times.backward[i] / iterations, " ms."));
  }
}

// Which layers the planner made one step of: their rows show 0, so the reader is told where their
// time went.
void tell_joined_layers(ProgramLog& log, Net& net) {
  std::string joined;
  const auto remember = [&](const Net::StepInfo& step, bool begin) {
    if (!begin || step.backward || step.node->members.size() < 2) return;
    std::vector<std::string> names;
    for (const int member : step.node->members)
      names.push_back(net.graph().net.layer(member).name());
    joined += (joined.empty() ? "" : "; ") + join(names, " ");
  };
  net.set_observer(remember);
  net.forward(0);
  net.set_observer({});
  if (!joined.empty())
    log.info(cat("Layers that run as one, timed in the row of the first: ", joined));
}

void time_layers(const VerbCall& call, Context& context, Net& net) {
  ProgramLog& log = call.log;
  log.info("Performing Forward");
  net.forward(0);
  log.info(cat("Initial loss: ", static_cast<float>(net.loss())));
  log.info("Performing Backward");
  net.backward();
  tell_joined_layers(log, net);

  log.info("*** Benchmark begins ***");
  log.info(cat("Testing for ", FLAGS_iterations, " iterations."));
  LayerTimes times(net, context);
  double forward_time = 0, backward_time = 0;
  for (int i = 0; i < FLAGS_iterations; ++i) {
    const auto begin = Clock::now();
    net.forward(i + 1);
    context.synchronize();
    const auto middle = Clock::now();
    net.backward();
    context.synchronize();
    const auto end = Clock::now();
    forward_time += milliseconds(middle - begin);
    backward_time += milliseconds(end - middle);
    log.info(
        cat("Iteration: ", i + 1, " forward-backward time: ", milliseconds(end - begin), " ms."));
  }
  const double total = forward_time + backward_time;
  print_table(log, net, times, FLAGS_iterations);
  log.info(cat("Average Forward pass: ", forward_time / FLAGS_iterations, " ms."));
  log.info(cat("Average Backward pass: ", backward_time / FLAGS_iterations, " ms."));
  log.info(cat("Average Forward-Backward: ", total / FLAGS_iterations, " ms."));
  log.info(cat("Total Time: ", total, " ms."));
  log.info("*** Benchmark ends ***");
}

int run(const VerbCall& call) {
  require(FLAGS_iterations > 0, "-iterations ", FLAGS_iterations, ": expected a positive number");
  const std::unique_ptr<Context> context = make_context(call.log);
  if (context->device() == Device::gpu) {
    call.log.info(cat("Use GPU with device ID ", context->ordinal()));
  } else {
    call.log.info("Use CPU.");
  }
  NetInput input = read_model(call.log, phase_of_flag(TRAIN));
  input.options.backward = true;
  input.options.precision = precision_for(*context);
  Net net(*context, input.net, input.options);
  fill_random_inputs(net);
  if (FLAGS_dump_plan) std::cout << net.dump_plan();
  if (FLAGS_train_step) {
    time_train_step(call.log, net);
  } else {
    time_layers(call, *context, net);
  }
  return 0;
}

REGISTER_VERB(time, {.summary = "measures how long a net's layers, or whole training steps, take",
                     .usage = "-model NET.prototxt [-train_step] [flags]",
                     .flags = {"model", "iterations", "train_step", "batch", "assume", "gpu",
                               "phase", "level", "stage", "weights", "implementation", "precision",
                               "tune", "off", "dump_plan"},
                     .run = run});

}  // namespace

}  // namespace crema
