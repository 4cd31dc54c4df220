#include <algorithm>

#include "base/error.h"
#include "layers/custom_types.h"
#include "layers/layer.h"
#include "net/graph/graph_builder.h"
#include "net/plan/plan.h"
#include "net/sources/batch_size.h"
#include "net/sources/source_shapes.h"
#include "tools/inputs/assume.h"
#include "tools/pages/drawing/net_drawing.h"

namespace crema {

namespace {

// Collects the messages about assumed shapes.
class Assumptions : public Log {
 public:
  void write(Severity, const std::source_location&, std::string_view line) override {
    lines.emplace_back(line);
  }
  std::vector<std::string> lines;
};

NetBoxes planned(const NetParameter& net, const NetInput& input) {
  Context context(Device::cpu);
  context.set_log(silent_log());
  GraphOptions options;
  options.training = input.options.state.phase() == TRAIN;
  options.folder = input.options.folder;
  options.where = input.options.where;
  const Graph graph = build_graph(context, net, options);
  PlanOptions plan;
  plan.backward = options.training;
  plan.fuse = input.options.fuse;
  plan.format = input.options.format;
  plan.reuse_memory = input.options.reuse_memory;
  if (plan.reuse_memory) plan.recompute = input.options.recompute;
  return net_boxes(graph, Plan(context, graph, plan));
}

// The message about the first source without data; "": all have data.
struct MissingData {
  std::string says;
  // Whether the fields of all sources without data give their shapes.
  bool states_shapes = true;
};

MissingData missing_data(const NetInput& input) {
  Context context(Device::cpu);
  context.set_log(silent_log());
  const bool training = input.options.state.phase() == TRAIN;
  MissingData missing;
  for (int i = 0; i < input.net.layer_size(); ++i) {
    const LayerParameter& source = input.net.layer(i);
    if (!is_source(source)) continue;
    try {
      at_layer({source.name(), input.options.where(i)}, [&] {
        const std::unique_ptr<Layer> layer = make_layer(source, training, input.options.folder);
        if (DataSource* const data = layer->source()) data->open(context);
        layer->setup(context, {});
        layer->infer({});
      });
    } catch (const Error& error) {
      if (missing.says.empty()) missing.says = error.what();
      missing.states_shapes &= stated_image({input.net, source}).has_value();
    }
  }
  return missing;
}

// Types of layers that this program cannot make; "": it can make all.
std::string unknown_types(const NetParameter& net) {
  const auto has = [](const std::vector<std::string>& all, const std::string& type) {
    return std::find(all.begin(), all.end(), type) != all.end();
  };
  const std::vector<std::string> own = custom_layer_types();
  std::vector<std::string> types;
  for (const LayerParameter& layer : net.layer()) {
    const std::string& type = layer.type();
    const bool runs = (LayerRegistry::has(type) && type != "Python") || has(own, type);
    if (!runs && !has(types, type)) types.push_back(type);
  }
  return join(types, ", ");
}

struct NotedBoxes {
  NetBoxes boxes;
  std::string note;
};

NotedBoxes noted_boxes(const NetInput& input) {
  const bool training = input.options.state.phase() == TRAIN;
  if (const std::string types = unknown_types(input.net); !types.empty())
    return {net_boxes(input.net, training),
            cat("Drawn without shapes, because layers of these types do not run here: ", types)};
  const MissingData missing = missing_data(input);
  if (missing.says.empty()) return {planned(input.net, input), ""};
  if (missing.states_shapes) {
    try {
      Assumptions log;
      NetParameter net = input.net;
      SourceReplacer replacer(log, "default", 0);
      replacer.replace(net, input.options.where);
      replacer.finish();
      return {planned(net, input), cat(join(log.lines, "; "), ", as ", missing.says)};
    } catch (const Error&) {
      // The assumed shapes do not fit; the net may be right with its data.
    }
  }
  return {net_boxes(input.net, training),
          cat("Drawn without shapes; -assume can set them: ", missing.says)};
}

}  // namespace

std::string net_svg(const NetInput& input, const std::string& title, Log& log) {
  NotedBoxes noted = noted_boxes(input);
  if (noted.boxes.name.empty()) noted.boxes.name = title;
  if (!noted.note.empty()) log.warning(noted.note);
  return net_svg(noted.boxes, noted.note);
}

}  // namespace crema
