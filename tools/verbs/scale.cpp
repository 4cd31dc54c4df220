// `crema scale -solver SOLVER.prototxt -gpus 8,64,512 -bandwidth 400,100`: predicts how fast
// training would be on many GPUs, from times measured on one, what would limit it, and what would
// help.
#include <charconv>
#include <cmath>
#include <cstdio>
#include <iostream>

#include "base/files.h"
#include "base/log.h"
#include "base/visible.h"
#include "solver/fields/freeze.h"
#include "tools/console/table.h"
#include "tools/devices.h"
#include "tools/flags/net_flags.h"
#include "tools/flags/numbers_of.h"
#include "tools/flags/solver_flags.h"
#include "tools/flags/trained_net.h"
#include "tools/inputs/random_inputs.h"
#include "tools/ranks/world_flags.h"
#include "tools/runs/train_nets.h"
#include "tools/scale/measure_profile.h"
#include "tools/scale/prediction.h"
#include "tools/verb.h"

namespace crema {

namespace {

using ScaleFlags =
    FlagsOf<"solver", "model", "times", "gpus", "bandwidth", "latency", "per_host", "wire", "shard",
            "buckets", "output", "iterations", "batch", "assume", "level", "stage", "gpu",
            "implementation", "precision", "gpu_memory", "tune", "deterministic", "off", "set">;

constexpr double good_efficiency = 0.9;  // where scaling is said to bend

Network network_of_flags(const ScaleFlags& flags, const std::vector<int>& sizes) {
  Network network;
  require(flags.per_host > 0, "-per_host ", flags.per_host, ": expected a positive number");
  network.per_host = flags.per_host;
  bool several_hosts = false;
  for (const int ranks : sizes) {
    several_hosts |= ranks > network.per_host;
    require(ranks <= network.per_host || ranks % network.per_host == 0, "-gpus ", ranks,
            ": expected full hosts, multiples of -per_host ", network.per_host);
  }
  require(
      !flags.bandwidth.empty(),
      "the network's bandwidth is needed: -bandwidth GB/s inside a host, and between hosts, such "
      "as -bandwidth 400,50 (each in one direction; 100 Gbit/s are 12.5 GB/s)");
  const auto bandwidths = numbers_of("bandwidth", flags.bandwidth, 2, 1e-6);
  require(!several_hosts || bandwidths.size() == 2, "-bandwidth ", flags.bandwidth,
          ": -gpus names more than the ", network.per_host,
          " of a host (-per_host): give the bandwidth between hosts, too, such as -bandwidth ",
          flags.bandwidth, ",12.5");
  network.inside = 1e9 * bandwidths[0];
  network.between = 1e9 * bandwidths.back();
  network.start = kStart;
  network.inside_latency = kInsideLatency;
  network.between_latency = kBetweenLatency;
  if (!flags.latency.empty()) {
    const auto latencies = numbers_of("latency", flags.latency, 2, 0.0);
    network.inside_latency = 1e-6 * latencies[0];
    network.between_latency = 1e-6 * latencies.back();
  }
  return network;
}

Exchange predicted_exchange(const ScaleFlags& flags) {
  const ExchangeOptions options = exchange_of_flags(flags);
  Exchange exchange;
  exchange.wire = options.wire == Wire::fp32 ? 4 : 2;
  exchange.shards = flags.shard;
  require(!flags.shard || options.wire == Wire::fp32,
          "-shard sends gradients in fp32: leave out -wire");
  if (options.buckets) exchange.buckets = *options.buckets;
  return exchange;
}

StepProfile profile_of_flags(const VerbCall& call, const ScaleFlags& flags) {
  if (!flags.times.empty()) {
    for (const char* flag : {"model", "solver", "assume", "batch", "gpu", "precision", "set"}) {
      require(call.given.count(flag) == 0, "-", flag, " and -times ", flags.times,
              ": the times belong to another run; measure this one without -times");
    }
    return profile_of_json(read_text(flags.times), flags.times);
  }
  SolverFile file = read_solver_or_model(call.log, flags,
                                         "nothing to measure: give -solver SOLVER.prototxt, -model "
                                         "NET.prototxt, or -times FILE with the "
                                         "times that an earlier run wrote");
  train_only(&file.solver);
  const std::unique_ptr<Context> context = context_of(call.log, flags, file);
  NetInput input = read_trained_net(call.log, *context, flags, file);
  set_passes(PassFlags::without<"recompute">(flags), &input.options);
  input.options.precision = precision_of_flag(*context, flags.precision, file.solver.precision());
  log_device(call.log, flags, *context, input.options.precision);
  const std::string device =
      cat(context->device() == Device::gpu ? gpu_name(context->ordinal()) : std::string("CPU"),
          ", ", name_of(input.options.precision));
  context->set_log(silent_log());
  Net net(*context, input.net, input.options);
  check_frozen_layers(file, net);
  fill_random_inputs(net);
  return measure_profile(flags, net, file.solver, device);
}

std::string digits(double number) {
  char text[32];
  std::snprintf(text, sizeof text,
                number == 0     ? "%.0f"
                : number < 0.95 ? "%.3f"
                : number < 99.5 ? "%.2f"
                                : "%.0f",
                number);
  return text;
}

std::string milliseconds(double seconds) { return digits(1e3 * seconds); }
std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * share);
  return text;
}

void print_profile(const StepProfile& profile, const Exchange& exchange) {
  const double bytes = static_cast<double>(profile.gradient_elements()) * exchange.wire;
  std::cout << visible(profile.net.empty() ? "The net" : profile.net) << ", batch " << profile.batch
            << (profile.iter_size > 1 ? cat(" x ", profile.iter_size) : "") << " on each GPU ("
            << visible(profile.device) << "): forward " << milliseconds(profile.forward)
            << " ms, backward " << milliseconds(profile.backward_seconds()) << " ms, update "
            << milliseconds(profile.update) << " ms; " << profile.gradient_elements()
            << " gradients, " << size_text(static_cast<size_t>(bytes)) << " to send\n\n";
}

std::vector<std::vector<std::string>> rows_of(const std::vector<Prediction>& all) {
  std::vector<std::vector<std::string>> rows = {{"GPUs", "hosts", "iteration ms",
                                                 "communication ms", "exposed ms", "efficiency",
                                                 "samples/s", "large sums"}};
  for (const Prediction& p : all) {
    rows.push_back({cat(p.ranks), cat(p.hosts), milliseconds(p.seconds),
                    milliseconds(p.communication), milliseconds(p.exposed), percent(p.efficiency),
                    digits(p.samples_per_second), p.algorithm});
  }
  return rows;
}

// The same without roundings and units in the cells.
std::string csv_of(const std::vector<Prediction>& all) {
  std::string csv =
      "gpus,hosts,iteration_ms,communication_ms,exposed_ms,efficiency,samples_per_second\n";
  for (const Prediction& p : all) {
    csv += cat(p.ranks, ",", p.hosts, ",", 1e3 * p.seconds, ",", 1e3 * p.communication, ",",
               1e3 * p.exposed, ",", p.efficiency, ",", p.samples_per_second, "\n");
  }
  return csv;
}

void print_what_ifs(const std::string& title, const char* column, const std::vector<WhatIf>& all,
                    const Prediction& now) {
  if (all.empty()) return;
  std::cout << "\n" << title << "\n";
  std::vector<std::vector<std::string>> rows = {
      {column, "iteration ms", "efficiency", "samples/s", "faster by"}};
  for (const WhatIf& what : all) {
    const Prediction& p = what.prediction;
    rows.push_back({what.change, milliseconds(p.seconds), percent(p.efficiency),
                    digits(p.samples_per_second),
                    percent(p.samples_per_second / now.samples_per_second - 1)});
  }
  print_table(rows, 1);
}

// Where scaling degrades: the first size below good_efficiency, otherwise the last.
const Prediction& bend_of(const std::vector<Prediction>& all) {
  for (const Prediction& p : all) {
    if (p.efficiency < good_efficiency) return p;
  }
  return all.back();
}

void write_output(ProgramLog& log, const std::string& output, const StepProfile& profile,
                  const std::vector<Prediction>& all) {
  if (output.empty()) return;
  write_file_atomically(output, ends_with(output, ".csv") ? csv_of(all) : json_of(profile));
  log.info(cat("Wrote ", output));
}

int run_scale(const VerbCall& call, const ScaleFlags& flags) {
  const std::vector<int> sizes = numbers_of("gpus", flags.gpus, 1000, 1);
  const Network network = network_of_flags(flags, sizes);
  const Exchange exchange = predicted_exchange(flags);
  require(
      flags.output.empty() || ends_with(flags.output, ".csv") || ends_with(flags.output, ".json"),
      "-output ", flags.output,
      ": expected NAME.json, for the times (-times reads them), or NAME.csv, for the table");
  const StepProfile profile = profile_of_flags(call, flags);

  std::vector<Prediction> all;
  for (const int ranks : sizes) all.push_back(predict(profile, network, exchange, ranks));
  print_profile(profile, exchange);
  print_table(rows_of(all), 0);
  const Prediction& bend = bend_of(all);
  if (bend.efficiency >= good_efficiency)
    std::cout << "\nAll sizes have an efficiency of " << percent(good_efficiency) << " or more.\n";
  std::vector<const Prediction*> explained = {&bend};
  if (&bend != &all.back()) explained.push_back(&all.back());
  for (const Prediction* p : explained) {
    print_what_ifs(cat("What limits ", p->ranks, " GPUs:"), "without",
                   limits_of(profile, network, exchange, p->ranks), *p);
    print_what_ifs(cat("What would help ", p->ranks, " GPUs:"), "with",
                   remedies_of(profile, network, exchange, p->ranks), *p);
  }
  std::cout
      << "\nA prediction (tools/cluster/README.md): without waiting for the slowest rank, for "
         "data or for a shared network.\n";
  write_output(call.log, flags.output, profile, all);
  return 0;
}

REGISTER_VERB(
    scale,
    {.summary = "predicts how fast training would be on many GPUs, and what limits it",
     .usage = "-solver SOLVER.prototxt | -model NET.prototxt | -times FILE.json "
              "-bandwidth GB/s[,GB/s] [-gpus N,N,...] [flags]",
     .example =
         "crema scale -solver models/lenet/digits_solver.prototxt -bandwidth 450,50 -gpus 8,64",
     .meanings = {{"output",
                   "Writes the prediction as a table (.csv), or the measured times (.json) for "
                   "-times. Empty: neither."},
                  {"model", "The net to predict for, instead of -solver: a prototxt file."},
                  {"iterations", "The number of iterations to measure."}},
     .log = LogStyle::brief,
     .run = run_scale});

}  // namespace

}  // namespace crema
