#include "net/deploy/deploy_inputs.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/error.h"
#include "device/context.h"
#include "layers/layer_facts.h"
#include "net/graph/graph_builder.h"
#include "net/sources/batch_size.h"
#include "net/sources/source_shapes.h"

namespace crema {

namespace {

// Recurrent layers take time as the first axis.
bool has_steps(const NetParameter& net) {
  return std::any_of(net.layer().begin(), net.layer().end(), [](const LayerParameter& layer) {
    return facts_of(layer.type()).kind == LayerKind::recurrent;
  });
}

class InputFinder {
 public:
  InputFinder(const DeployGraph& graph, const std::vector<bool>& needed,
              const DeployOptions& options)
      : graph_(graph),
        needed_(needed),
        options_(options),
        assumed_(parse_assumed_shapes(options.assume, options.assume_setting)),
        batch_(batch_of(graph, options)) {}

  std::vector<DeployInput> find() {
    check_names();
    std::vector<DeployInput> all;
    for (int i = 0; i < graph_.net.layer_size(); ++i) {
      if (graph_.roles[i] != DeployRole::source) continue;
      std::optional<std::vector<Shape>> opened;  // once for all tops
      for (const int top : graph_.tops[i]) {
        if ((graph_.blobs[top].gone && !options_.labels) || !is_read(top)) continue;
        DeployInput input{i, top, -1, {}};
        cut(&input);
        if (find_shape(&input, &opened)) all.push_back(input);
      }
    }
    if (!missing_.empty()) fail_for_missing();
    return all;
  }

 private:
  bool is_read(int blob) const {
    const auto& readers = graph_.blobs[blob].readers;
    return std::any_of(readers.begin(), readers.end(), [&](int reader) { return needed_[reader]; });
  }

  // If only a Slice reads the source, and one part of it is used, that part is the input.
  void cut(DeployInput* input) const {
    int slice = -1;
    for (const int reader : graph_.blobs[input->blob].readers) {
      if (!needed_[reader]) continue;
      if (slice >= 0 || graph_.net.layer(reader).type() != "Slice") return;
      slice = reader;
    }
    if (slice < 0) return;  // a result itself
    std::vector<int> parts;
    for (const int top : graph_.tops[slice]) {
      if (is_read(top)) parts.push_back(top);
    }
    if (parts.size() != 1) return;
    input->slice = slice;
    input->blob = parts[0];
  }

  bool find_shape(DeployInput* input, std::optional<std::vector<Shape>>* opened) {
    if (const auto named = assumed(input->blob)) {
      input->shape = *named;
      return true;
    }
    if (input->slice < 0) {
      const auto shape = shape_of(input->source, input->blob, opened);
      if (shape) input->shape = *shape;
      return shape.has_value();
    }
    const int whole = graph_.bottoms[input->slice][0];
    auto shape = assumed(whole);
    if (!shape) shape = shape_of(input->source, whole, opened);
    if (!shape) return false;
    NetParameter net;
    LayerParameter* whole_input = net.add_layer();
    whole_input->set_type("Input");
    whole_input->add_top(graph_.blobs[whole].name);
    BlobShape* extents = whole_input->mutable_input_param()->add_shape();
    for (const int64_t extent : shape->dims()) extents->add_dim(extent);
    *net.add_layer() = graph_.net.layer(input->slice);
    GraphOptions options;
    options.where = [&](int layer) {
      return options_.where(layer == 0 ? input->source : input->slice);
    };
    input->shape = tops_of(net, options).at(graph_.blobs[input->blob].top);
    return true;
  }

  std::optional<Shape> assumed(int blob) const {
    const auto named = assumed_.of_top.find(graph_.blobs[blob].name);
    if (named == assumed_.of_top.end()) return std::nullopt;
    Shape shape = named->second;
    if (options_.batch > 0 && shape.axes() > 0) shape[0] = options_.batch;
    return shape;
  }

  // The source's own shape, otherwise that of its fields.
  std::optional<Shape> shape_of(int source, int blob, std::optional<std::vector<Shape>>* opened) {
    const LayerParameter& layer = graph_.net.layer(source);
    const int top = graph_.blobs[blob].top;
    std::string reason;
    if (!*opened) *opened = open(layer, &reason);
    if (top < static_cast<int>((*opened)->size())) {
      Shape shape = (**opened)[top];
      if (layer.type() == "Input" && shape.axes() > 0 &&
          (options_.batch > 0 || batch_.replaces(shape[0])))
        shape[0] = batch_.samples;
      return shape;
    }
    const SourceTop described{graph_.net, layer, top, batch_.samples};
    const auto stated = stated_image(described);
    const auto shape = assumed_.defaults ? usual_shape(described) : stated;
    if (shape && assumed_.defaults && !options_.weights.empty())
      return shape_by_weights(layer.top(top), *shape, stated.has_value(), needed_layers(),
                              options_.weights,
                              [&](const NetParameter& net) { return blobs_of(net); });
    if (shape) return shape;
    if (missing_.empty()) {
      first_missing_ = source;
      reason_ = reason;
    }
    missing_.push_back(layer.top(top));
    examples_.push_back(cat(layer.top(top), "=", likely_shape(described)));
    return std::nullopt;
  }

  NetParameter needed_layers() const {
    NetParameter net;
    for (int i = 0; i < graph_.net.layer_size(); ++i)
      if (needed_[i] && graph_.roles[i] == DeployRole::layer)
        *net.add_layer() = graph_.net.layer(i);
    return net;
  }

  std::optional<std::map<std::string, Shape>> blobs_of(const NetParameter& net) {
    try {
      std::map<std::string, Shape> shapes;
      for (const Value& value : build_graph(context_, net, {}).values)
        shapes[value.blob] = value.shape;
      return shapes;
    } catch (const Error&) {  // too small an image
      return std::nullopt;
    }
  }

  // The shapes of its tops; none when its files are not there.
  std::vector<Shape> open(const LayerParameter& layer, std::string* reason) {
    LayerParameter message = layer;
    if (layer.type() == "Python") {
      *reason = "it is a Python layer";
      return {};
    }
    try {
      if (message.type() != "Input" && batch_.samples > 0) set_batch_size(message, batch_.samples);
    } catch (const Error&) {  // it has its own idea of a batch
    }
    NetParameter net;
    *net.add_layer() = message;
    GraphOptions options;
    options.folder = options_.folder;
    try {
      return tops_of(net, options);
    } catch (const Error& error) {
      *reason = error.what();
      const std::string place = cat("layer \"", layer.name(), "\": ");
      if (starts_with(*reason, place)) reason->erase(0, place.size());
      return {};
    }
  }

  // For the last layer. A separate graph checks all of a layer's requirements.
  std::vector<Shape> tops_of(const NetParameter& net, const GraphOptions& options) {
    const Graph graph = build_graph(context_, net, options);
    std::vector<Shape> shapes;
    for (const int top : graph.views.back().tops) shapes.push_back(graph.values[top].shape);
    return shapes;
  }

  [[noreturn]] void fail_for_missing() const {
    const LayerParameter& layer = graph_.net.layer(first_missing_);
    const bool one = missing_.size() == 1;
    const std::string examples = join(examples_, ",");
    const bool open = examples.find("=SHAPE") != std::string::npos;
    const std::string known = options_.assume.empty() ? "" : options_.assume + ",";
    fail(options_.where(first_missing_), ": layer \"", layer.name(), "\" (", layer.type(),
         "): ", one ? "the shape of the input \"" : "the shapes of the inputs \"",
         join(missing_, "\", \""), one ? "\" is" : "\" are",
         " not known, as its source cannot be read", reason_.empty() ? "" : cat(" (", reason_, ")"),
         " and its fields state no size; name ", one ? "it" : "them", ", for example ",
         options_.assume_command(known + examples),
         open ? " (with numbers such as 1x3x224x224 for SHAPE)" : "");
  }

  // For sources, and for parts that a Slice takes out of them.
  void check_names() const {
    std::vector<std::string> names;
    for (const DeployBlob& blob : graph_.blobs) {
      const auto& bottoms = graph_.bottoms[blob.producer];
      const bool cut = graph_.net.layer(blob.producer).type() == "Slice" && !bottoms.empty() &&
                       is_source_top(bottoms[0]);
      if (cut || is_source_top(static_cast<int>(&blob - graph_.blobs.data())))
        names.push_back(blob.name);
    }
    for (const auto& [top, shape] : assumed_.of_top) {
      require(std::find(names.begin(), names.end(), top) != names.end(), options_.assume_setting,
              ": no data layer has a top \"", top, "\"", did_you_mean(top, names),
              "; the tops are ", join(names, ", "));
    }
  }

  bool is_source_top(int blob) const {
    return graph_.roles[graph_.blobs[blob].producer] == DeployRole::source;
  }

  const DeployGraph& graph_;
  const std::vector<bool>& needed_;
  const DeployOptions& options_;
  const AssumedShapes assumed_;
  const DeployBatch batch_;
  Context context_{Device::cpu};
  std::vector<std::string> missing_, examples_;
  int first_missing_ = -1;
  std::string reason_;  // why it could not be read
};

}  // namespace

DeployBatch batch_of(const DeployGraph& graph, const DeployOptions& options) {
  const AssumedShapes assumed = parse_assumed_shapes(options.assume, options.assume_setting);
  DeployBatch batch;
  batch.samples = options.batch > 0 || has_steps(graph.net) ? options.batch : 1;
  bool first = true;
  for (const DeployBlob& blob : graph.blobs) {
    if (graph.roles[blob.producer] != DeployRole::source) continue;
    const auto named = assumed.of_top.find(blob.name);
    if (std::exchange(first, false) && batch.samples == 1 && named != assumed.of_top.end())
      batch.samples = static_cast<int>(named->second[0]);
    const LayerParameter& layer = graph.net.layer(blob.producer);
    const auto& shapes = layer.input_param().shape();
    if (layer.type() != "Input") {
      const auto samples = SourceTop{graph.net, layer, blob.top, 0}.samples();
      if (samples) batch.before.insert(*samples);
    } else if (blob.gone && blob.top < shapes.size() && shapes[blob.top].dim_size() > 0) {
      batch.before.insert(shapes[blob.top].dim(0));
    }
  }
  return batch;
}

void set_batch(const DeployBatch& batch, LayerParameter* made_up) {
  DummyDataParameter* numbers = made_up->mutable_dummy_data_param();
  for (BlobShape& shape : *numbers->mutable_shape()) {
    if (shape.dim_size() > 0 && batch.replaces(shape.dim(0))) shape.set_dim(0, batch.samples);
  }
  for (uint32_t& samples : *numbers->mutable_num()) {
    if (batch.replaces(samples)) samples = batch.samples;
  }
}

std::vector<DeployInput> find_inputs(const DeployGraph& graph, const std::vector<bool>& needed,
                                     const DeployOptions& options) {
  return InputFinder(graph, needed, options).find();
}

}  // namespace crema
