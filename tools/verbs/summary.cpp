// `crema summary -model NET.prototxt [-phase TEST]`: shows each layer of a net with its shapes,
// parameters and memory; with -memory also what uses the memory when the net runs.
#include <algorithm>
#include <iostream>

#include "base/visible.h"
#include "device/memory_account.h"
#include "net/graph/filter.h"
#include "net/graph/graph_builder.h"
#include "net/plan/plan.h"
#include "tools/console/table.h"
#include "tools/devices.h"
#include "tools/flags/net_flags.h"
#include "tools/measure/net_size.h"
#include "tools/verb.h"

namespace crema {

namespace {

using SummaryFlags =
    FlagsOf<"model", "phase", "level", "stage", "assume", "batch", "memory", "gpu", "precision",
            "gpu_memory", "tune", "off", "recompute", "dump_plan", "set">;

// "1,234,567".
struct Totals {
  int64_t parameters = 0, learned = 0, activations = 0, multiply_adds = 0;
};

std::vector<std::vector<std::string>> rows_of(const Graph& graph, Totals* totals) {
  std::vector<std::vector<std::string>> rows = {
      {"layer", "type", "tops", "parameters", "FLOPs", "memory"}};
  const std::vector<int64_t> multiply_adds = multiply_adds_of(graph);
  for (int i = 0; i < graph.net.layer_size(); ++i) {
    const LayerParameter& layer = graph.net.layer(i);
    if (layer.type() == "Split") continue;  // costs nothing
    std::vector<std::string> tops, shared;
    int64_t activations = 0, parameters = 0;
    for (const int top : graph.views[i].tops) {
      tops.push_back(graph.values[top].blob + " " + graph.values[top].shape.brief());
      activations += graph.values[top].shape.count();
    }
    for (const int index : graph.views[i].parameters) {
      const Parameter& parameter = graph.parameters[index];
      if (parameter.layer != layer.name()) {
        shared.push_back(parameter.name);
        continue;
      }
      parameters += parameter.shape.count();
      if (parameter.learned && parameter.lr_mult != 0) totals->learned += parameter.shape.count();
    }
    totals->parameters += parameters;
    totals->activations += activations;
    totals->multiply_adds += multiply_adds[i];
    std::string count = parameters > 0 || shared.empty() ? grouped(parameters) : "";
    if (!shared.empty()) count += (count.empty() ? "shares " : ", shares ") + join(shared, ", ");
    rows.push_back({layer.name(), layer.type(), join(tops, ", "), count,
                    multiply_adds[i] > 0 ? grouped(2 * multiply_adds[i]) : "",
                    size_text(4 * (activations + parameters))});
  }
  return rows;
}

// "1.5 MiB", and "" for 0.
std::string cell(size_t bytes) { return bytes > 0 ? size_text(bytes) : ""; }

// Prints the largest pieces at the peak, the rest as one row.
void print_peak(const MemoryPeak& peak) {
  constexpr size_t kRows = 12;
  std::cout << "\nMost of that, " << size_text(peak.bytes) << ", is in use in the "
            << (peak.backward ? "backward" : "forward") << " pass of " << visible(peak.layers)
            << ":\n\n";
  std::vector<std::vector<std::string>> rows;
  size_t rest = 0;
  for (const MemoryPeak::Piece& piece : peak.pieces) {
    if (rows.size() == kRows) {
      rest += piece.bytes;
    } else {
      rows.push_back({piece.what, size_text(piece.bytes)});
    }
  }
  if (rest > 0) rows.push_back({cat(peak.pieces.size() - kRows, " smaller ones"), size_text(rest)});
  print_table(rows, 1);
}

int print_memory(const VerbCall& call, const SummaryFlags& flags, NetInput& input) {
  const std::unique_ptr<Context> context =
      make_context(call.log, DeviceFlags::without<"implementation", "deterministic">(flags));
  context->set_log(silent_log());
  const size_t of_streams = context->memory()->taken();
  input.options.precision = precision_of_flag(*context, flags.precision);
  Net net(*context, input.net, input.options);

  std::vector<std::vector<std::string>> rows = {
      {"layers", "type", "blobs", "for backward", "again", "gradients", "weights", "workspace"}};
  LayerMemory sum;
  for (const LayerMemory& step : net.memory_by_layer()) {
    rows.push_back({step.layers, step.type, cell(step.blobs), cell(step.kept),
                    cell(step.recomputed), cell(step.gradients), cell(step.parameters),
                    cell(step.workspace)});
    sum.blobs += step.blobs;
    sum.kept += step.kept;
    sum.recomputed += step.recomputed;
    sum.gradients += step.gradients;
    sum.parameters += step.parameters;
    sum.workspace = std::max(sum.workspace, step.workspace);
  }
  rows.push_back({"sum", "", cell(sum.blobs), cell(sum.kept), cell(sum.recomputed),
                  cell(sum.gradients), cell(sum.parameters), cell(sum.workspace)});
  const MemoryKinds kinds = net.memory();
  std::cout << visible(net.name().empty() ? flags.model : net.name()) << ", phase "
            << Phase_Name(input.options.state.phase()) << ", on the " << name_of(context->device())
            << " in " << name_of(input.options.precision) << "\n\n";
  print_table(rows, 2);
  std::cout << "\nBlobs and gradients that are not needed at the same time share memory:\n\n";
  std::vector<std::vector<std::string>> parts;
  for (const auto& [name, bytes] : parts_of(kinds)) parts.push_back({name, size_text(bytes)});
  size_t total = kinds.total();
  const auto add = [&](const char* name, size_t bytes) {
    total += bytes;
    if (bytes > 0) parts.push_back({name, size_text(bytes)});
  };
  add("streams and cuBLAS's workspace", of_streams);
  // So far: kernels are loaded with their first use.
  add("CUDA's context and libraries", process_memory(*context).libraries);
  parts.push_back({"in all", size_text(total)});
  print_table(parts, 1);
  print_peak(net.memory_peak());
  if (net.training() && kinds.parameters > 0)
    std::cout << "\nA solver keeps " << size_text(kinds.parameters)
              << " more, Adam and AdaDelta twice that.\n";
  return 0;
}

int run_summary(const VerbCall& call, const SummaryFlags& flags) {
  const Phase phase = phase_of_flag(flags.phase, TRAIN);
  NetInput input = read_model(call.log, flags, phase);
  if (flags.memory) return print_memory(call, flags, input);
  Context context(Device::cpu);
  GraphOptions options;
  options.training = phase == TRAIN;
  options.folder = input.options.folder;
  options.where = input.options.where;
  const Graph graph = build_graph(context, input.net, options);

  PlanOptions plan_options;
  plan_options.backward = phase == TRAIN;
  plan_options.fuse = input.options.fuse;
  plan_options.format = input.options.format;
  plan_options.reuse_memory = input.options.reuse_memory;
  if (plan_options.reuse_memory) plan_options.recompute = input.options.recompute;
  const Plan plan(context, graph, plan_options);

  Totals totals;
  const auto rows = rows_of(graph, &totals);
  std::cout << visible(graph.net.name().empty() ? flags.model : graph.net.name()) << ", phase "
            << Phase_Name(phase) << "\n\n";
  print_table(rows, 3);
  const size_t parameter_bytes = 4 * static_cast<size_t>(totals.parameters);
  std::cout << "\n"
            << rows.size() - 1 << " layers; " << grouped(totals.parameters) << " parameters, "
            << grouped(totals.learned) << " of them learned; " << grouped(totals.multiply_adds)
            << " multiply-adds in a forward pass, two FLOPs each\n"
            << "parameters " << size_text(parameter_bytes)
            << (phase == TRAIN ? ", the same again for their gradients" : "") << "; blobs "
            << size_text(4 * static_cast<size_t>(totals.activations))
            << " if each kept its own memory\n"
            << "planned on the CPU: " << size_text(plan.arena_bytes)
            << (phase == TRAIN ? " for activations and gradients, " : " for activations, ")
            << size_text(plan.persistent_bytes) << " that stays between passes, "
            << size_text(plan.workspace_bytes) << " of workspace\n";
  if (flags.dump_plan) std::cout << "\n" << plan.dump(graph);
  return 0;
}

REGISTER_VERB(
    summary,
    {.summary = "prints each layer of a net with shapes, parameters and memory",
     .usage = "-model NET.prototxt [flags]",
     .example = "crema summary -model models/lenet/digits_train_val.prototxt",
     .meanings =
         {{"gpu", "The number of the GPU to run on. Empty: the CPU."},
          {"precision",
           "The precision: fp32, tf32, bf16 or fp16. Empty: tf32 on a GPU, fp32 on a CPU."}},
     .log = LogStyle::brief,
     .run = run_summary});

}  // namespace

}  // namespace crema
