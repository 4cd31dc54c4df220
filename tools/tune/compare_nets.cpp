#include "tools/tune/compare_nets.h"

#include <algorithm>
#include <iostream>
#include <map>

#include "base/visible.h"
#include "net/plan/plan.h"
#include "tools/console/table.h"
#include "tools/devices.h"
#include "tools/flags/net_flags.h"
#include "tools/inputs/random_inputs.h"
#include "tools/tune/differences.h"
#include "tools/tune/warnings_only.h"

namespace crema {

namespace {

// Sums of thousands of products in another order differ by some hundred roundings in a deep net.
double rounding_of(Precision precision) {
  switch (precision) {
    case Precision::fp32:
      return 1e-4;
    case Precision::tf32:
    case Precision::fp16:
      return 2e-2;
    case Precision::bf16:
      return 1e-1;
  }
  return 0;
}

// Blobs share memory, so each is read right after it was written.
void keep_tops(Net& net, const PlanNode& node, NetPass* pass) {
  if (node.members.empty()) return;  // inserted by the planner
  const Graph& graph = net.graph();
  const int layer = node.members.back();
  const Graph::View& view = graph.views[layer];
  for (size_t j = 0; j < node.arguments.forward.top.size() && j < view.tops.size(); ++j) {
    const Tensor& top = node.arguments.forward.top[j];
    if (!top || top.count() == 0) continue;
    pass->tops.push_back({graph.net.layer(layer).name(), graph.values[view.tops[j]].blob,
                          to_floats(net.context(), top)});
  }
}

// Shares those of the first net, unless it is the first.
void give_parameters(const std::vector<std::vector<float>>& values, const std::string& with,
                     Net& net) {
  if (values.empty()) return;
  const std::vector<Parameter>& parameters = net.parameters();
  bool fit = parameters.size() == values.size();
  for (size_t i = 0; fit && i < values.size(); ++i)
    fit = static_cast<size_t>(parameters[i].shape.count()) == values[i].size();
  require(fit, "-with ", with, ": the second net has different parameters");
  for (size_t i = 0; i < values.size(); ++i)
    from_floats(net.context(), values[i].data(), parameters[i].data);
  net.parameters_changed();
}

struct Row {
  std::string layer, blob;
  Difference difference;
};

// The common ones, in the order of `a`.
std::vector<Row> rows_of(const std::vector<NetPass::Blob>& a, const std::vector<NetPass::Blob>& b) {
  std::map<std::pair<std::string, std::string>, const NetPass::Blob*> of_b;
  for (const NetPass::Blob& blob : b) of_b[{blob.layer, blob.name}] = &blob;
  std::vector<Row> rows;
  for (const NetPass::Blob& blob : a) {
    const auto at = of_b.find({blob.layer, blob.name});
    if (at == of_b.end() || at->second->values.size() != blob.values.size()) continue;
    rows.push_back({blob.layer, blob.name, difference_of(blob.values, at->second->values)});
  }
  return rows;
}

void print_rows(const char* what, const std::vector<Row>& rows, double rounding) {
  std::vector<std::vector<std::string>> table = {
      {"layer", what, "relative difference", "largest difference", ""}};
  for (const Row& row : rows) {
    const Difference& d = row.difference;
    table.push_back({row.layer, row.blob, shown_difference(d.relative, d.same),
                     shown_difference(d.largest, d.same), d.relative <= rounding ? "" : "<--"});
  }
  print_table(table, 2);
}

// `rows` in the order in which a pass computes them.
void print_first(const char* what, const std::vector<Row>& rows, double rounding) {
  const Row *first = nullptr, *beyond = nullptr;
  for (const Row& row : rows) {
    if (row.difference.same) continue;
    if (!first) first = &row;
    if (!(row.difference.relative <= rounding) && !beyond) beyond = &row;
  }
  if (!first) {
    std::cout << "Every " << what << " is the same bit for bit.\n";
    return;
  }
  const auto told = [](const Row& row) {
    return cat("that of layer \"", row.layer, "\", ", row.blob, ", by ",
               shown_difference(row.difference.relative, false), " of its norm");
  };
  std::cout << visible(cat("The first ", what, " that differs is ", told(*first), ".")) << "\n";
  if (!beyond) {
    std::cout << "No " << what << " differs beyond rounding (" << rounding << " of its norm).\n";
  } else {
    std::cout << visible(cat("The first beyond rounding (", rounding, ") is ", told(*beyond), "."))
              << "\n";
  }
}

}  // namespace

NetPass run_pass(ProgramLog& log, const CompareFlags& flags,
                 const std::vector<std::vector<float>>& parameters) {
  const std::unique_ptr<Context> context = make_context(log, flags);
  const Precision precision = precision_of_flag(*context, flags.precision);
  log_device(log, flags, *context, precision);
  NetInput input =
      read_model(log, ModelFlags::without<"recompute">(flags), phase_of_flag(flags.phase, TRAIN));
  input.options.precision = precision;
  WarningsOnly warnings(log);
  context->set_log(warnings);
  Net net(*context, input.net, input.options);
  if (!flags.weights.empty()) load_weights_of_flags(flags, net);
  fill_random_inputs(net);
  give_parameters(parameters, flags.with, net);

  NetPass pass;
  pass.rounding = rounding_of(precision);
  for (const Parameter& parameter : net.parameters())
    pass.parameters.push_back(to_floats(*context, parameter.data));
  net.set_observer([&](const Net::StepInfo& step, bool begin) {
    if (!begin && !step.backward) keep_tops(net, *step.node, &pass);
  });
  net.forward(0);
  net.set_observer(nullptr);
  pass.loss = net.loss();
  if (!net.training()) return pass;
  net.backward();
  for (const Parameter& parameter : net.parameters()) {
    if (!parameter.diff || !parameter.learned) continue;
    pass.gradients.push_back(
        {parameter.layer, cat("parameter ", parameter.index), to_floats(*context, parameter.diff)});
  }
  return pass;
}

void print_differences(const NetPass& a, const NetPass& b, const std::string& with) {
  const double rounding = std::max(a.rounding, b.rounding);
  const std::vector<Row> tops = rows_of(a.tops, b.tops);
  std::vector<Row> gradients = rows_of(a.gradients, b.gradients);
  require(!tops.empty(), "-with ", with, ": the two nets have no blob in common");
  print_rows("top", tops, rounding);
  if (!gradients.empty()) {
    std::cout << "\n";
    print_rows("gradient of", gradients, rounding);
  }
  std::cout << "\nLoss: " << a.loss << " and " << b.loss << ".\n";
  print_first("top", tops, rounding);
  std::reverse(gradients.begin(), gradients.end());  // as backward computes them
  if (!gradients.empty()) print_first("gradient", gradients, rounding);
}

}  // namespace crema
