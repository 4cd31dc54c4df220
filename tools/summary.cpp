// `crema summary -model NET.prototxt [-phase TEST]`: each layer of a net with its shapes,
// parameters and memory.
#include <iostream>

#include "net/filter.h"
#include "net/graph_builder.h"
#include "net/plan.h"
#include "tools/devices.h"
#include "tools/flags.h"
#include "tools/net_input.h"
#include "tools/table.h"
#include "tools/verb.h"

namespace crema {

namespace {

// "1,234,567".
std::string grouped(int64_t number) {
  std::string digits = cat(number);
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3) digits.insert(at, ",");
  return digits;
}

struct Totals {
  int64_t parameters = 0, learned = 0, activations = 0;
};

std::vector<std::vector<std::string>> rows_of(const Graph& graph, Totals* totals) {
  std::vector<std::vector<std::string>> rows = {{"layer", "type", "tops", "parameters", "memory"}};
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
    std::string count = parameters > 0 || shared.empty() ? grouped(parameters) : "";
    if (!shared.empty()) count += (count.empty() ? "shares " : ", shares ") + join(shared, ", ");
    rows.push_back({layer.name(), layer.type(), join(tops, ", "), count,
                    size_text(4 * (activations + parameters))});
  }
  return rows;
}

int run(const VerbCall& call) {
  const Phase phase = phase_of_flag(TRAIN);
  const NetInput input = read_model(call.log, phase);
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
  const Plan plan(context, graph, plan_options);

  Totals totals;
  const auto rows = rows_of(graph, &totals);
  std::cout << (graph.net.name().empty() ? FLAGS_model : graph.net.name()) << ", phase "
            << Phase_Name(phase) << "\n\n";
  print_table(rows, 3);
  const size_t parameter_bytes = 4 * static_cast<size_t>(totals.parameters);
  std::cout << "\n"
            << rows.size() - 1 << " layers; " << grouped(totals.parameters) << " parameters, "
            << grouped(totals.learned) << " of them learned\n"
            << "parameters " << size_text(parameter_bytes)
            << (phase == TRAIN ? ", their gradients as much again" : "") << "; blobs "
            << size_text(4 * static_cast<size_t>(totals.activations))
            << " if each kept its own memory\n"
            << "planned on the CPU: " << size_text(plan.arena_bytes)
            << (phase == TRAIN ? " for activations and gradients, " : " for activations, ")
            << size_text(plan.persistent_bytes) << " that stays between passes, "
            << size_text(plan.workspace_bytes) << " of workspace\n";
  if (FLAGS_dump_plan) std::cout << "\n" << plan.dump(graph);
  return 0;
}

REGISTER_VERB(summary,
              {.summary = "prints each layer of a net with shapes, parameters and memory",
               .usage = "-model NET.prototxt [flags]",
               .flags = {"model", "phase", "level", "stage", "assume", "batch", "off", "dump_plan"},
               .run = run});

}  // namespace

}  // namespace crema
