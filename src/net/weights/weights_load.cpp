#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "base/error.h"
#include "data/databases/hdf5/hdf5_file.h"
#include "layers/layer_facts.h"
#include "net/graph/given_blobs.h"
#include "net/weights/machine_blobs.h"
#include "net/weights/weights.h"
#include "net/weights/weights_hdf5.h"

namespace crema {
namespace {

using Outcome = LoadedLayer::Outcome;

// A matrix of one row per output, as fully connected layers have; old files have more leading ones.
bool is_matrix(const Shape& shape) {
  return shape.axes() >= 2 && without_leading_ones(shape).axes() <= 2 &&
         without_leading_ones(shape).count() == shape.count(shape.axes() - 2);
}

// The weights of a fully connected layer that became a convolution, or vice versa: each output has
// its values in the same order.
bool same_rows(const Shape& matrix, const Shape& filters) {
  return is_matrix(matrix) && filters.axes() > 2 && !is_matrix(filters) &&
         matrix.count() == filters.count() && matrix[matrix.axes() - 2] == filters[0];
}

// How a stored blob fits a parameter.
enum class Fit { equal, reshaped, none };

Fit fit_of(const StoredBlob& blob, const Shape& wanted) {
  const Shape stored(blob.shape);
  if (stored == wanted) return Fit::equal;
  if (blob.legacy_axes && without_leading_ones(stored) == without_leading_ones(wanted))
    return Fit::equal;
  if (stored.count() != wanted.count()) return Fit::none;
  if (same_rows(stored, wanted) || same_rows(wanted, stored)) return Fit::reshaped;
  // 1xCx1x1 for C.
  const auto without_ones = [](const Shape& shape) {
    std::vector<int64_t> dims;
    std::copy_if(shape.dims().begin(), shape.dims().end(), std::back_inserter(dims),
                 [](int64_t extent) { return extent != 1; });
    return dims;
  };
  return without_ones(stored) == without_ones(wanted) ? Fit::reshaped : Fit::none;
}

// What a file's layer lacks for the net's layer of its name; empty: all of it can be loaded.
struct Misfit {
  std::vector<std::string> what;
  bool reshapes = true;  // each blob that differs has the same values in another shape
};

class Loader {
 public:
  Loader(Net& net, const std::string& path, const LoadOptions& options, bool hdf5)
      : net_(net), graph_(net.graph()), path_(path), options_(options) {
    for (int i = graph_.net.layer_size() - 1; i >= 0; --i) {
      const std::string& name = graph_.net.layer(i).name();
      layer_of_[hdf5 ? hdf5_group(name) : name] = i;
    }
  }

  // All blobs of a layer or none: most of them mean something only together.
  void load(StoredLayer stored) {
    ++stored_layers_;
    const auto at = layer_of_.find(stored.name);
    if (at == layer_of_.end()) {
      net_.context().log().info("Ignoring source layer " + stored.name);
      report_.ignored.push_back(stored.name);
      return;
    }
    std::vector<int> parameters = graph_.views[at->second].parameters;
    if (parameters.empty() && stored.blobs.empty()) return;
    const LayerParameter& message = graph_.net.layer(at->second);
    arrange(message, parameters.size(), &stored.blobs);
    leave_out_blobs(message, &stored.blobs);
    if (lacks_only_chains(message, stored.blobs)) parameters.pop_back();
    LoadedLayer& layer = of_net_[at->second];
    layer.name = message.name();
    layer.outcome = Outcome::loaded;
    const Misfit misfit = compare(stored, parameters, layer.name);
    const bool strict = options_.mode == WeightsMode::strict;
    if (!misfit.what.empty() && (strict || !misfit.reshapes)) {
      const std::string what = join(misfit.what, ", ");
      require(!strict, path_, ": layer \"", layer.name, "\": ", what,
              advice(message, stored, parameters.size(), misfit));
      return note(&layer, Outcome::skipped, what);
    }
    for (size_t k = 0; k < std::min(stored.blobs.size(), parameters.size()); ++k)
      load_blob(stored.blobs[k], parameters[k], &layer);
    if (stored.blobs.size() > parameters.size()) note(&layer, Outcome::loaded, "without its bias");
    if (lacks_bias(stored, parameters, layer.name))
      note(&layer, Outcome::loaded, "the bias is not in the file");
  }

  LoadReport finish() {
    for (int i = 0; i < graph_.net.layer_size(); ++i) {
      const std::vector<int>& parameters = graph_.views[i].parameters;
      if (parameters.empty()) continue;
      const bool any = std::any_of(parameters.begin(), parameters.end(),
                                   [&](int id) { return loaded_.count(id) > 0; });
      const LayerParameter& layer = graph_.net.layer(i);
      const auto at = of_net_.find(i);
      if (at != of_net_.end()) {
        report_.layers.push_back(at->second);
      } else if (layer.stored() && facts_of(layer.type()).in_use != InUse::bypassed) {
        report_.layers.push_back({graph_.net.layer(i).name(),
                                  any ? Outcome::loaded : Outcome::missing,
                                  any ? "shared with another layer" : ""});
      }
    }
    if (loaded_.empty() && !graph_.parameters.empty()) {
      fail(path_, ": not one blob of its ", stored_layers_, " layers fits net \"", net_.name(),
           "\", so nothing would be loaded. Layers are matched by name: the file has ",
           listed(report_.ignored), "; the net's layers with parameters are ",
           listed(names_of_net()));
    }
    net_.fill_others(loaded_);
    return std::move(report_);
  }

 private:
  bool owns(int id, const std::string& layer) const { return graph_.parameters[id].layer == layer; }

  // A fork of Intel's stores a BatchNorm's scale and bias in front of its statistics. FlowNet stores
  // a count, the mean image and the mean of each channel, of which a net reads one.
  static void arrange(const LayerParameter& message, size_t parameters,
                      std::vector<StoredBlob>* blobs) {
    if (message.type() == "DataAugmentation" && parameters == 1 && blobs->size() == 3)
      *blobs = {(*blobs)[message.augmentation_param().mean_per_pixel() ? 1 : 2]};
    if (message.type() != "BatchNorm" || parameters != 5 || blobs->size() != 5) return;
    if ((*blobs)[2].data.size() > 1 && (*blobs)[4].data.size() == 1)
      std::rotate(blobs->begin(), blobs->begin() + 2, blobs->end());
  }

  int axes(int id) const { return graph_.parameters[id].shape.axes(); }

  // Weights mean the same without their bias.
  bool lacks_bias(const StoredLayer& stored, const std::vector<int>& parameters,
                  const std::string& layer) const {
    return stored.blobs.size() == 1 && parameters.size() == 2 && axes(parameters[0]) > 1 &&
           axes(parameters[1]) == 1 && owns(parameters[1], layer);
  }
  bool drops_bias(const StoredLayer& stored, const std::vector<int>& parameters) const {
    return stored.blobs.size() == 2 && parameters.size() == 1 && axes(parameters[0]) > 1 &&
           without_leading_ones(Shape(stored.blobs[1].shape)).axes() <= 1;
  }

  Misfit compare(const StoredLayer& stored, const std::vector<int>& parameters,
                 const std::string& layer) const {
    Misfit misfit;
    // HDF5 files leave out parameters that belong to another layer.
    size_t needed = parameters.size();
    while (needed > stored.blobs.size() && !owns(parameters[needed - 1], layer)) --needed;
    if (stored.blobs.size() != needed && stored.blobs.size() != parameters.size()) {
      misfit.what.push_back(
          cat("the file has ", stored.blobs.size(), " blobs, the net ", parameters.size()));
      misfit.reshapes = drops_bias(stored, parameters) || lacks_bias(stored, parameters, layer);
    }
    for (size_t k = 0; k < std::min(stored.blobs.size(), parameters.size()); ++k) {
      const StoredBlob& blob = stored.blobs[k];
      const Parameter& parameter = graph_.parameters[parameters[k]];
      if (blob.data.empty() && blob.shape.empty()) {
        if (!owns(parameters[k], layer)) continue;  // stored with its owner
        misfit.what.push_back(cat("parameter ", k, " is not in the file"));
        misfit.reshapes = false;
        continue;
      }
      const Fit fit = fit_of(blob, parameter.shape);
      if (fit == Fit::equal || (fit == Fit::reshaped && blob.legacy_axes)) continue;
      misfit.what.push_back(cat("parameter ", k, " is ", Shape(blob.shape).brief(),
                                " in the file, ", parameter.shape.brief(), " in the net"));
      misfit.reshapes = misfit.reshapes && fit == Fit::reshaped;
    }
    return misfit;
  }

  void load_blob(const StoredBlob& blob, int id, LoadedLayer* layer) {
    if (blob.data.empty() && blob.shape.empty()) return;  // stored with its owner
    const Parameter& parameter = graph_.parameters[id];
    if (fit_of(blob, parameter.shape) == Fit::equal) {
      note(layer, Outcome::loaded, parameter.shape.brief());
    } else {
      note(layer, Outcome::reshaped,
           cat(Shape(blob.shape).brief(), " -> ", parameter.shape.brief()));
    }
    from_floats(net_.context(), blob.data.data(), parameter.data);
    loaded_.insert(id);
  }

  static std::string advice(const LayerParameter& message, const StoredLayer& stored,
                            size_t parameters, const Misfit& misfit) {
    if (message.type() == "BatchNorm" && stored.blobs.size() == 5 && parameters == 3)
      return "; the file's BatchNorm has scale and bias of its own: write batch_norm_param { "
             "scale_bias: true }";
    if (message.type() == "BatchNorm" && stored.blobs.size() == 3 && parameters == 5)
      return "; in the file scale and bias belong to a Scale layer: write that layer, and leave "
             "out scale_bias and its fillers";
    if (misfit.reshapes && stored.blobs.size() == parameters)
      return "; the values are the same in another shape: -weights_mode match loads them reshaped, "
             "and crema surgery makes convolutions of a net's fully connected layers and writes "
             "their weights";
    if (misfit.reshapes) return "; -weights_mode match loads what both have";
    return "; to train this layer from its initial values give it another name, or run with "
           "-weights_mode match";
  }

  static void note(LoadedLayer* layer, Outcome outcome, const std::string& what) {
    layer->outcome = std::max(layer->outcome, outcome);
    layer->detail += (layer->detail.empty() ? "" : ", ") + what;
  }

  std::vector<std::string> names_of_net() const {
    std::vector<std::string> names;
    for (int i = 0; i < graph_.net.layer_size(); ++i) {
      if (!graph_.views[i].parameters.empty()) names.push_back(graph_.net.layer(i).name());
    }
    return names;
  }

  static std::string listed(std::vector<std::string> names) {
    constexpr size_t kMax = 5;
    if (names.empty()) return "none besides";
    const size_t more = names.size() > kMax ? names.size() - kMax : 0;
    names.resize(names.size() - more);
    return cat(join(names, ", "), more > 0 ? cat(" and ", more, " more") : "");
  }

  Net& net_;
  const Graph& graph_;
  const std::string path_;
  const LoadOptions options_;
  LoadReport report_;
  std::map<std::string, int> layer_of_;
  std::map<int, LoadedLayer> of_net_;
  std::set<int> loaded_;  // parameters
  int stored_layers_ = 0;
};

void log_table(Log& log, const LoadReport& report, const std::string& path) {
  for (const LoadedLayer& layer : report.layers) {
    switch (layer.outcome) {
      case Outcome::loaded:
        log.info(cat("Loaded ", layer.name, ": ", layer.detail));
        break;
      case Outcome::reshaped:
        log.info(cat("Reshaped ", layer.name, ": ", layer.detail));
        break;
      case Outcome::skipped:
        log.warning(cat("Skipped ", layer.name, ": ", layer.detail));
        break;
      case Outcome::missing:
        log.warning(cat("Not in the file: ", layer.name, " (keeps its initial values)"));
        break;
    }
  }
  log.info(cat(path, ": ", report.count(Outcome::loaded), " layers loaded, ",
               report.count(Outcome::reshaped), " reshaped, ", report.count(Outcome::skipped),
               " skipped, ", report.count(Outcome::missing), " not in the file; ",
               report.ignored.size(), " of the file ignored"));
}

LoadReport finish(const Net& net, Loader& loader, const std::string& path,
                  const LoadOptions& options) {
  LoadReport report = loader.finish();
  if (options.table) log_table(net.context().log(), report, path);
  return report;
}

LoadReport load_layers(Net& net, std::vector<StoredLayer> layers, const std::string& path,
                       const LoadOptions& options) {
  Loader loader(net, path, options, false);
  for (StoredLayer& layer : layers) loader.load(std::move(layer));
  return finish(net, loader, path, options);
}

}  // namespace

int LoadReport::count(Outcome outcome) const {
  return static_cast<int>(
      std::count_if(layers.begin(), layers.end(),
                    [&](const LoadedLayer& layer) { return layer.outcome == outcome; }));
}

LoadReport load_weights(Net& net, const std::string& path, const LoadOptions& options) {
  if (!is_hdf5(path)) return load_layers(net, read_caffemodel(path).layers, path, options);
  Loader loader(net, path, options, true);
  read_hdf5_weights(path, [&](const StoredLayer& layer) { loader.load(layer); });
  return finish(net, loader, path, options);
}

LoadReport load_weights_content(Net& net, std::string_view content, const std::string& name,
                                const LoadOptions& options) {
  require(!content.empty(), name, ": is empty");
  require(!starts_with(content, "\x89HDF\r\n"), name,
          ": HDF5 is read from files only: load it by its path, or convert it to a .caffemodel");
  return load_layers(net, parse_caffemodel(content.data(), content.size(), name).layers, name,
                     options);
}

}  // namespace crema
