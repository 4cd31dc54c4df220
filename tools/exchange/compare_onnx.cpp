#include "tools/exchange/compare_onnx.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/visible.h"
#include "exchange/onnx/reader.h"
#include "tools/classify/deployed_model.h"
#include "tools/flags/net_flags.h"

namespace crema {

namespace {

using Names = std::vector<std::string>;

std::string shown(const Names& names) {
  Names all;
  for (const std::string& name : names) all.push_back(visible(name));
  return all.empty() ? "none" : join(all, ", ");
}

// Inputs that are not constants.
std::vector<onnx::ValueInfoProto> inputs_of(const onnx::GraphProto& graph) {
  std::set<std::string> constants;
  for (const onnx::TensorProto& tensor : graph.initializer()) constants.insert(tensor.name());
  std::vector<onnx::ValueInfoProto> inputs;
  for (const onnx::ValueInfoProto& input : graph.input())
    if (!constants.count(input.name())) inputs.push_back(input);
  return inputs;
}

// The batch that the model's first input has; 0: any.
int batch_of(const onnx::GraphProto& graph) {
  const std::vector<onnx::ValueInfoProto> inputs = inputs_of(graph);
  if (inputs.empty()) return 0;
  const onnx::TensorShapeProto& shape = inputs[0].type().tensor_type().shape();
  return shape.dim_size() > 0 ? static_cast<int>(shape.dim(0).dim_value()) : 0;
}

bool has_external_data(const onnx::GraphProto& graph) {
  return std::any_of(graph.initializer().begin(), graph.initializer().end(),
                     [](const onnx::TensorProto& tensor) {
                       return tensor.data_location() == onnx::TensorProto::EXTERNAL;
                     });
}

class Matcher {
 public:
  Matcher(const onnx::ModelProto& model, const Net& net) : model_(model), graph_(net.graph()) {}

  ComparedModel match(const std::string& path) {
    match_inputs();
    match_values();
    match_results();
    require(!compared_.values.empty(), "no blob of the net has the name of a value of ",
            visible(path), ", and their results are not of one number: ", shown(results_of_net()),
            " here, ", shown(results_of_model()), " there");
    if (has_external_data(model_.graph())) {
      compared_.path = std::filesystem::absolute(path).string();
    } else {
      compared_.bytes = with_outputs().SerializeAsString();
    }
    return std::move(compared_);
  }

 private:
  Names results_of_net() const {
    Names names;
    for (const int id : graph_.outputs) names.push_back(graph_.values[id].blob);
    return names;
  }
  Names results_of_model() const {
    Names names;
    for (const onnx::ValueInfoProto& output : model_.graph().output())
      names.push_back(output.name());
    return names;
  }

  void match_inputs() {
    Names ours, theirs;
    for (const Node& node : graph_.nodes)
      if (node.message.type() == "Input")
        for (const int id : node.tops) ours.push_back(graph_.values[id].blob);
    for (const onnx::ValueInfoProto& input : inputs_of(model_.graph())) {
      theirs.push_back(input.name());
      require(input.type().tensor_type().elem_type() != onnx::TensorProto::UINT8,
              "the model's input ", visible(input.name()),
              " takes pictures as bytes, not the net's input; export it without -preprocess to "
              "compare it");
    }
    if (ours.size() == 1 && theirs.size() == 1) {
      if (ours != theirs) compared_.inputs[ours[0]] = theirs[0];
      return;
    }
    std::sort(ours.begin(), ours.end());
    std::sort(theirs.begin(), theirs.end());
    require(ours == theirs, "the inputs have other names: ", shown(ours), " in the net, ",
            shown(theirs), " in the model");
  }

  // With external data only the model's own outputs can be had.
  void match_values() {
    std::set<std::string> made;
    if (has_external_data(model_.graph())) {
      for (const onnx::ValueInfoProto& output : model_.graph().output()) made.insert(output.name());
    } else {
      for (const onnx::NodeProto& node : model_.graph().node())
        made.insert(node.output().begin(), node.output().end());
    }
    const Names names = onnx_names(graph_);
    for (size_t id = 0; id < names.size(); ++id)
      if (made.count(names[id])) compared_.values[static_cast<int>(id)] = names[id];
  }

  // Results whose names differ are matched by their order.
  void match_results() {
    const Names theirs = results_of_model();
    if (theirs.size() != graph_.outputs.size()) return;
    for (size_t i = 0; i < theirs.size(); ++i) {
      const bool named = std::any_of(compared_.values.begin(), compared_.values.end(),
                                     [&](const auto& value) { return value.second == theirs[i]; });
      if (!named) compared_.values.emplace(graph_.outputs[i], theirs[i]);
    }
  }

  // Runtimes give only outputs, and infer the types of these.
  onnx::ModelProto with_outputs() const {
    onnx::ModelProto model = model_;
    const Names results = results_of_model();
    for (const auto& [id, name] : compared_.values)
      if (std::find(results.begin(), results.end(), name) == results.end())
        model.mutable_graph()->add_output()->set_name(name);
    return model;
  }

  const onnx::ModelProto& model_;
  const Graph& graph_;
  ComparedModel compared_;
};

}  // namespace

void compare_onnx(const std::string& path, const std::string& net_path,
                  const CompareOnnxFlags& flags, ProgramLog& log) {
  require(!flags.weights.empty(), "the net's weights are needed: -weights FILE.caffemodel");
  require(flags.batch >= 0, "-batch ", flags.batch, ": expected a positive number");
  check_verification_flags(flags);
  const onnx::ModelProto model = read_onnx_model(path);
  Context context(Device::cpu);
  context.set_log(log.library());
  NetState outer;
  add_level_and_stages(flags, &outer);
  Settings settings(flags.set);
  NetInput input =
      read_net_input(net_path, phase_of_flag(flags.phase, TEST), outer, log.library(), &settings);
  settings.require_used();
  const DeployedNet deployed =
      deploy_model(log, DeployFlags::without<"labels", "resize", "mean", "scale", "rgb">(flags),
                   input, flags.batch > 0 ? flags.batch : batch_of(model.graph()));
  input.options.where = [&deployed, where = input.options.where](int i) {
    return where(deployed.origins[i]);
  };
  input.options.state.set_phase(TEST);  // whatever phase its layers are from
  input.options.keep_blobs = input.options.row_major = true;
  input.options.fuse = false;
  input.options.weights_follow = !flags.weights.empty();
  Net net(context, deployed.net, input.options);
  load_weights_of_flags(flags, net);
  const int ran = report_verification(net, Matcher(model, net).match(path), flags, "", log);
  require(ran > 0, "no runtime has run ", visible(path), ": the two are not compared");
}

}  // namespace crema
