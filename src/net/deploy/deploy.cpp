#include "net/deploy/deploy.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/visible.h"
#include "net/deploy/deploy_inputs.h"
#include "net/deploy/deploy_layer.h"
#include "net/deploy/deploy_results.h"
#include "net/net_text.h"
#include "net/sources/source_files.h"

namespace crema {

namespace {

// Python layers whose tops are named by the user are sources, too.
NetParameter with_assumed_sources(const NetParameter& net, const DeployOptions& options) {
  const AssumedShapes assumed = parse_assumed_shapes(options.assume, options.assume_setting);
  NetParameter changed = net;
  for (LayerParameter& layer : *changed.mutable_layer()) {
    if (layer.type() != "Python") continue;
    for (const std::string& top : layer.top()) {
      if (assumed.of_top.count(top)) layer.clear_bottom();
    }
  }
  return changed;
}

class Deployer {
 public:
  Deployer(const NetParameter& net, const DeployOptions& options, Log& log)
      : options_(options),
        log_(log),
        source_(with_assumed_sources(net, options)),
        graph_(source_, options.where) {}

  DeployedNet run() {
    const std::vector<DeployResult> results = find_results(graph_, &left_out_);
    if (results.empty())
      fail(net_place(),
           "the net has no result: no layer with parameters leads to a loss, to a "
           "metric or to a blob that no layer reads");
    std::vector<int> blobs;
    for (const DeployResult& result : results) blobs.push_back(result.blob);
    needed_ = layers_before(graph_, blobs);
    inputs_ = find_inputs(graph_, needed_, options_);
    take_names();
    deployed_.net.set_name(source_.name());
    for (int i = 0; i < source_.layer_size(); ++i) add(i, results);
    for (const DeployInput& input : inputs_) prepare(input);
    set_labels();
    deployed_.notes = left_out_;
    return std::move(deployed_);
  }

 private:
  std::string net_place() const {
    return source_.layer_size() > 0 ? options_.where(0) + ": " : std::string();
  }

  // Names that new layers and blobs must not have.
  void take_names() {
    for (int i = 0; i < source_.layer_size(); ++i) {
      if (!needed_[i] || is_replaced(i)) continue;
      layer_names_.insert(source_.layer(i).name());
      for (const std::string& top : source_.layer(i).top()) blob_names_.insert(top);
    }
    for (const DeployInput& input : inputs_) blob_names_.insert(graph_.blobs[input.blob].name);
  }

  // By an Input layer.
  bool is_replaced(int layer) const {
    return graph_.roles[layer] == DeployRole::source ||
           std::any_of(inputs_.begin(), inputs_.end(),
                       [&](const DeployInput& input) { return input.slice == layer; });
  }

  static std::string free_name(const std::string& wanted, std::set<std::string>* taken) {
    std::string name = wanted;
    for (int i = 2; !taken->insert(name).second; ++i) name = cat(wanted, "_", i);
    return name;
  }

  void add(int i, const std::vector<DeployResult>& results) {
    for (const DeployInput& input : inputs_) {
      if (input.source == i) add_input(input);
    }
    if (needed_[i] && !is_replaced(i)) add_kept(i);
    if (graph_.roles[i] == DeployRole::silence) add_silence(i);
    const auto several = std::count_if(results.begin(), results.end(),
                                       [](const auto& result) { return result.layer >= 0; });
    for (const DeployResult& result : results) {
      if (result.layer == i) add_activation(result, several > 1);
    }
  }

  LayerParameter* next(int origin) {
    deployed_.origins.push_back(origin);
    return deployed_.net.add_layer();
  }

  void add_input(const DeployInput& input) {
    const std::string& top = graph_.blobs[input.blob].name;
    LayerParameter* layer = next(input.source);
    layer->set_name(free_name(top, &layer_names_));
    layer->set_type("Input");
    layer->add_top(top);
    BlobShape* shape = layer->mutable_input_param()->add_shape();
    for (const int64_t extent : input.shape.dims()) shape->add_dim(extent);
  }

  void prepare(const DeployInput& input) {
    const LayerParameter& source = source_.layer(input.source);
    const std::string& name = graph_.blobs[input.blob].name;
    if (const InputPreparation* stated = find_preparation(options_.preparation, name)) {
      *deployed_.preparation.add_input() = *stated;
      if (options_.change && input.shape.axes() == 4)
        options_.change(&*deployed_.preparation.mutable_input()->rbegin());
    } else {
      deployed_.preparation.MergeFrom(
          preparation_of(source, name, input.shape, options_.folder, options_.change, log_));
    }
    const InputPreparation* known = find_preparation(deployed_.preparation, name);
    deployed_.inputs.push_back(known ? describe(*known, input.shape)
                                     : cat(name, ": ", input.shape.brief()));
    if (!known || known->transform_param().has_gray() || input.shape.axes() != 4 ||
        input.shape[1] != 3 || source.type() != "Data")
      return;
    deployed_.inputs.push_back(
        cat("The planes of ", source_of(source, options_.folder),
            " are taken for blue, green, red, "
            "as convert_imageset stores them; -rgb if they are red, green, blue"));
  }

  void set_labels() {
    const std::string file = class_names_file_of(source_, options_.folder);
    if (!file.empty()) {
      deployed_.preparation.set_labels(file);
    } else if (options_.preparation.has_labels()) {
      deployed_.preparation.set_labels(options_.preparation.labels());
    }
  }

  void add_kept(int i) {
    const LayerParameter layer = kept(i);
    if (layer.type() != "RBM") {
      *next(i) = layer;
      return;
    }
    *next(i) = hidden_units(layer);
    if (layer.rbm_param().hidden() != RBMParameter::BINARY) return;
    LayerParameter sigmoid;
    sigmoid.set_type("Sigmoid");
    sigmoid.set_name(free_name(layer.name() + "_sigmoid", &layer_names_));
    sigmoid.add_bottom(layer.top(1));
    sigmoid.add_top(layer.top(1));
    *next(i) = sigmoid;
  }

  LayerParameter kept(int i) const {
    LayerParameter layer = without_training(source_.layer(i));
    if (layer.type() == "DummyData") set_batch(batch_of(graph_, options_), &layer);
    layer.clear_bottom();
    for (int j = 0; j < source_.layer(i).bottom_size(); ++j) {
      const DeployBlob& blob = graph_.blobs[graph_.bottoms[i][j]];
      if (!(blob.gone && is_optional_label(layer, j))) layer.add_bottom(blob.name);
    }
    return layer;
  }

  // Blobs that are produced but that no other layer reads.
  void add_silence(int i) {
    LayerParameter layer = without_training(source_.layer(i));
    layer.clear_bottom();
    for (const int bottom : graph_.bottoms[i]) {
      const DeployBlob& blob = graph_.blobs[bottom];
      const bool read = std::any_of(blob.readers.begin(), blob.readers.end(),
                                    [&](int reader) { return needed_[reader]; });
      if (needed_[blob.producer] && !is_replaced(blob.producer) && !read)
        layer.add_bottom(blob.name);
    }
    if (layer.bottom_size() > 0) *next(i) = layer;
  }

  void add_activation(const DeployResult& result, bool several) {
    const LayerParameter& loss = source_.layer(result.layer);
    const std::string& bottom = graph_.blobs[result.blob].name;
    LayerParameter layer = activation_layer(loss, result.activation);
    // The second top of a loss has the same numbers.
    const std::string wanted = several ? cat(bottom, "_prob") : "prob";
    layer.set_name(free_name(wanted, &layer_names_));
    layer.add_bottom(bottom);
    layer.add_top(free_name(loss.top_size() > 1 ? loss.top(1) : wanted, &blob_names_));
    *next(result.layer) = layer;
  }

  const DeployOptions& options_;
  Log& log_;
  const NetParameter source_;
  const DeployGraph graph_;
  std::vector<bool> needed_;
  std::vector<DeployInput> inputs_;
  std::vector<std::string> left_out_;
  std::set<std::string> layer_names_, blob_names_;
  DeployedNet deployed_;
};

}  // namespace

DeployedNet deploy(const NetParameter& net, const DeployOptions& options, Log& log) {
  require(options.batch >= 0, "-batch ", options.batch, ": expected a positive number");
  return Deployer(net, options, log).run();
}

std::string text_of(const DeployedNet& deployed, const std::string& folder) {
  std::string text = text_of(deployed.preparation, folder);
  for (const std::string& note : deployed.notes) text += "# " + visible(note) + "\n";
  return text + net_text(deployed.net);
}

}  // namespace crema
