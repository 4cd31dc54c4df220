#include "solver/events/run_identity.h"

#include <google/protobuf/text_format.h>

#include <cstdio>
#include <ctime>
#include <set>

#include "base/strings.h"
#include "net/sources/source_files.h"
#include "proto/params/loss.pb.h"
#include "solver/events/checksum.h"

namespace crema {
namespace {

// Number of classes of the first loss that compares scores with classes; 0: there is none.
int64_t classes_of_loss(const Graph& graph) {
  for (int i = 0; i < graph.net.layer_size(); ++i) {
    const LayerParameter& layer = graph.net.layer(i);
    if (layer.type() == "MultiBoxLoss") return layer.multibox_loss_param().num_classes();
    if (layer.type() != "SoftmaxWithLoss" || graph.views[i].bottoms.empty()) continue;
    const Shape& scores = graph.values[graph.views[i].bottoms[0]].shape;
    return scores[scores.canonical_axis(layer.softmax_param().axis())];
  }
  return 0;
}

// Longer texts of a layer are cut: a reader wants to see its fields, not the numbers of a long list.
constexpr size_t kLongestText = 1000;

std::string unique_name(std::string name, std::set<std::string>& taken) {
  if (name.empty()) name = "layer";
  std::string unique = name;
  for (int i = 2; !taken.insert(unique).second; ++i) unique = cat(name, "_", i);
  return unique;
}

}  // namespace

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm fields{};
  gmtime_r(&now, &fields);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &fields);
  return text;
}

std::string hash_of_text(const NetParameter& net) {
  const std::string bytes = net.SerializeAsString();
  return hex_of(Checksum().add(bytes.data(), bytes.size()).value());
}

std::string hash_of_recipe(const NetParameter& net, const SolverParameter& solver) {
  const std::string of_net = net.SerializeAsString(), of_solver = solver.SerializeAsString();
  return hex_of(
      Checksum().add(of_net.data(), of_net.size()).add(of_solver.data(), of_solver.size()).value());
}

std::string hash_of_weights(Net& net) { return hex_of(weights_checksum(net)); }

std::vector<std::pair<std::string, std::string>> settings_in(SolverParameter solver) {
  using google::protobuf::FieldDescriptor;
  const std::string type = solver.type();
  solver.set_type(type);
  for (const char* name :
       {"net", "train_net", "snapshot", "snapshot_prefix", "snapshot_format", "snapshot_minutes",
        "snapshot_after_train", "keep_last", "keep_every", "display", "debug_info", "test_interval",
        "test_initialization", "test_compute_loss", "solver_mode", "device_id", "snapshot_epoch",
        "test_interval_epoch", "epoch_log"}) {
    if (const FieldDescriptor* field = SolverParameter::descriptor()->FindFieldByName(name))
      solver.GetReflection()->ClearField(&solver, field);
  }
  std::vector<const FieldDescriptor*> fields;
  solver.GetReflection()->ListFields(solver, &fields);
  std::vector<std::pair<std::string, std::string>> settings;
  for (const FieldDescriptor* field : fields) {
    if (field->is_repeated() || field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) continue;
    std::string text;
    google::protobuf::TextFormat::PrintFieldValueToString(solver, field, -1, &text);
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING)
      text = solver.GetReflection()->GetString(solver, field);
    settings.emplace_back(field->name(), text);
  }
  return settings;
}

ClassNames class_names_of_run(const Net& net, Log& log) {
  ClassNames names = class_names_of(net.graph().net, net.options().folder);
  const int64_t classes = classes_of_loss(net.graph());
  if (names.empty() || classes == 0) return {};
  try {
    require_count(names, classes, "the net");
  } catch (const Error& problem) {
    log.warning(cat(problem.what(), ". This run goes on with numbers instead of names"));
    return {};
  }
  return names;
}

event::NetGraph net_graph(const Graph& graph) {
  event::NetGraph shown;
  std::set<std::string> taken;
  for (const Node& node : graph.nodes) {
    event::NetGraph::Node layer;
    layer.name = unique_name(node.message.name(), taken);
    layer.type = node.message.type();
    for (const int bottom : node.bottoms)
      layer.inputs.push_back({graph.values[bottom].producer, graph.values[bottom].top});
    for (const int top : node.tops) {
      const Shape& shape = graph.values[top].shape;
      layer.shapes.emplace_back();
      for (int axis = 0; axis < shape.axes(); ++axis) layer.shapes.back().push_back(shape[axis]);
    }
    std::vector<std::string> parameters;
    for (const int id : node.parameters) parameters.push_back(graph.parameters[id].shape.brief());
    if (!parameters.empty()) layer.notes.emplace_back("parameters", join(parameters, ", "));
    std::string text = node.message.ShortDebugString();
    if (text.size() > kLongestText) text = text.substr(0, kLongestText) + " ...";
    layer.notes.emplace_back("layer", text);
    shown.nodes.push_back(std::move(layer));
  }
  return shown;
}

}  // namespace crema
