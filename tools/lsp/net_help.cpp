#include "tools/lsp/net_help.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "net/plan/plan.h"
#include "solver/rates/learning_rate.h"
#include "tools/lsp/net_reading.h"
#include "tools/measure/net_size.h"

namespace crema {
namespace {

// A layer that is made, and where it is in the graph.
struct FoundLayer {
  MadeNet made;
  int layer = 0;
};

// In the first phase that has it.
std::optional<FoundLayer> found_layer(const Document& document, const OpenFiles& files,
                                      const TypedPlace& place) {
  if (!place.layer) return std::nullopt;
  const SyntaxTree& tree = document.tree();
  const std::string here =
      cat(name_of(document), ":", tree.place(tree.token(place.layer->all.begin).begin));
  try {
    const NetReading reading(document, files);
    for (const Phase phase : {TRAIN, TEST}) {
      FoundLayer found{reading.made_in(phase, silent_log()), 0};
      const MadeNet& made = found.made;
      if (!made.graph) continue;
      for (; found.layer < made.graph->net.layer_size(); ++found.layer) {
        const int from = made.input_layer(found.layer);
        const std::string where = from < 0 ? "" : made.input.options.where(from);
        if (where == here || starts_with(where, here + " ")) return found;
      }
    }
  } catch (const Error&) {  // which is shown as a mistake
  }
  return std::nullopt;
}

std::string quoted_names(const std::vector<std::string>& names) {
  std::vector<std::string> quoted;
  for (const std::string& name : names) quoted.push_back(cat("`", name, "`"));
  return join(quoted, ", ");
}

std::string fusion_of(const MadeNet& made, int writer, const std::set<int>& readers) {
  PlanOptions options;
  options.backward = made.input.options.state.phase() == TRAIN;
  try {
    const Plan plan(*made.context, *made.graph, options);
    for (const PlanNode& node : plan.nodes) {
      const std::vector<int>& members = node.members;
      if (members.size() < 2 || std::find(members.begin(), members.end(), writer) == members.end())
        continue;
      std::vector<std::string> names;
      for (const int member : members) names.push_back(made.graph->net.layer(member).name());
      const bool inside =
          !readers.empty() && std::all_of(readers.begin(), readers.end(), [&](int reader) {
            return std::find(members.begin(), members.end(), reader) != members.end();
          });
      return cat("- ", quoted_names(names), " run as one step on a CPU",
                 inside ? ", so that it is never stored" : "", "\n");
    }
  } catch (const Error&) {  // the plan needs more than the shapes
  }
  return "";
}

}  // namespace

std::string blob_help(const Document& document, const OpenFiles& files, const TypedPlace& place,
                      const std::string& blob, bool is_top) {
  const std::optional<FoundLayer> found = found_layer(document, files, place);
  if (!found) return "";
  const Graph& graph = *found->made.graph;
  const LayerParameter& given = found->made.input.net.layer(found->made.input_layer(found->layer));
  const auto& names = is_top ? given.top() : given.bottom();
  // Names with variables differ from those in the net.
  auto at = static_cast<size_t>(std::find(names.begin(), names.end(), blob) - names.begin());
  if (at == static_cast<size_t>(names.size())) at = 0;
  const Graph::View& view = graph.views[found->layer];
  const std::vector<int>& values = is_top ? view.tops : view.bottoms;
  if (at >= values.size()) return "";
  const int id = values[at];
  const Value& value = graph.values[id];
  const Node& writer = graph.nodes[value.producer];
  std::vector<std::string> readers;
  std::set<int> reading;
  for (const Node& node : graph.nodes) {
    if (std::find(node.bottoms.begin(), node.bottoms.end(), id) == node.bottoms.end()) continue;
    readers.push_back(node.message.name());
    reading.insert(node.members[0]);
  }
  const std::string& name = names.empty() ? blob : names[static_cast<int>(at)];
  return cat("**", name, "**: ", value.shape.brief(), ", ",
             size_text(4 * static_cast<size_t>(value.shape.count())),
             " in float32\n\n- written by `", writer.message.name(), "` (", writer.message.type(),
             ")\n- ",
             readers.empty() ? "read by no layer: a result of the net"
                             : cat("read by ", quoted_names(readers)),
             "\n", fusion_of(found->made, writer.members[0], reading));
}

std::string layer_help(const Document& document, const OpenFiles& files, const TypedPlace& place) {
  const std::optional<FoundLayer> found = found_layer(document, files, place);
  if (!found) return "";
  const Graph& graph = *found->made.graph;
  const Graph::View& view = graph.views[found->layer];
  const auto shapes = [&](const std::vector<int>& values) {
    std::vector<std::string> texts;
    for (const int value : values)
      texts.push_back(cat("`", graph.values[value].blob, "` ", graph.values[value].shape.brief()));
    return texts.empty() ? std::string("nothing") : join(texts, ", ");
  };
  std::string text = cat("From ", shapes(view.bottoms), " to ", shapes(view.tops));
  for (const int index : view.parameters)
    text += cat("\n- parameter of ", graph.parameters[index].shape.brief());
  const int64_t work = multiply_adds_of(graph)[found->layer];
  if (work > 0) text += cat("\n- ", grouped(work), " multiply-adds");
  return text;
}

std::string rate_help(const Document& document, const OpenFiles& files) {
  constexpr int kMostRows = 24, kMostIterations = 10'000'000;
  try {
    const std::string name = name_of(document);
    const SolverFile file = parse_solver_text(document.text(), name,
                                              std::make_shared<Settings>(settings_of(name, files)));
    const SolverParameter& solver = file.solver;
    check_learning_rate(solver);
    const int last = std::min(solver.max_iter(), kMostIterations);
    if (last < 1) return "";
    std::set<int> rows = {0, last / 4, last / 2, last / 4 * 3, last - 1};
    if (solver.warmup_iter() > 0) rows.insert({solver.warmup_iter() / 2, solver.warmup_iter()});
    for (const int step : solver.stepvalue()) rows.insert({step - 1, step});
    for (int step = solver.stepsize(); solver.lr_policy() == "step" && step > 0 && step < last &&
                                       static_cast<int>(rows.size()) < kMostRows;
         step += solver.stepsize())
      rows.insert({step - 1, step});
    std::string text = "| iteration | learning rate |\n|---|---|\n";
    RateState state = first_rate_state(solver);
    int shown = 0;
    for (const int iteration : rows) {
      if (iteration < 0 || iteration >= last || ++shown > kMostRows) continue;
      text +=
          cat("| ", grouped(iteration), " | ", learning_rate(solver, iteration, &state), " |\n");
    }
    return text;
  } catch (const Error&) {  // which is shown as a mistake
    return "";
  }
}

}  // namespace crema
