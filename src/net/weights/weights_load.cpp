#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "data/databases/hdf5_file.h"
#include "net/weights/weights.h"
#include "net/weights/weights_hdf5.h"

namespace crema {
namespace {

using Outcome = LoadedLayer::Outcome;

// Shapes of old files have four axes whatever the blob has: leading ones are ignored.
Shape without_leading_ones(const Shape& shape) {
  size_t first = 0;
  while (first < shape.dims().size() && shape.dims()[first] == 1) ++first;
  return Shape(std::vector<int64_t>(shape.dims().begin() + static_cast<std::ptrdiff_t>(first),
                                    shape.dims().end()));
}

class Loader {
 public:
  Loader(Net& net, const std::string& path, const LoadOptions& options, bool hdf5)
      : net_(net), graph_(net.graph()), path_(path), options_(options) {
    for (int i = graph_.net.layer_size() - 1; i >= 0; --i) {
      const std::string& name = graph_.net.layer(i).name();
      layer_of_[hdf5 ? hdf5_group(name) : name] = i;
    }
  }

  void load(const StoredLayer& stored) {
    ++stored_layers_;
    const auto at = layer_of_.find(stored.name);
    if (at == layer_of_.end()) {
      net_.context().log().info("Ignoring source layer " + stored.name);
      report_.ignored.push_back(stored.name);
      return;
    }
    const std::vector<int>& parameters = graph_.views[at->second].parameters;
    if (parameters.empty() && stored.blobs.empty()) return;
    LoadedLayer& layer = of_net_[at->second];
    layer.name = graph_.net.layer(at->second).name();
    layer.outcome = Outcome::loaded;
    if (stored.blobs.size() != parameters.size()) count_differs(stored, parameters, &layer);
    for (size_t k = 0; k < std::min(stored.blobs.size(), parameters.size()); ++k) {
      load_blob(stored.blobs[k], static_cast<int>(k), parameters[k], &layer);
    }
  }

  LoadReport finish() {
    for (int i = 0; i < graph_.net.layer_size(); ++i) {
      const std::vector<int>& parameters = graph_.views[i].parameters;
      if (parameters.empty()) continue;
      const bool any = std::any_of(parameters.begin(), parameters.end(),
                                   [&](int id) { return loaded_.count(id) > 0; });
      const auto at = of_net_.find(i);
      if (at != of_net_.end()) {
        report_.layers.push_back(at->second);
      } else {
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
    return std::move(report_);
  }

 private:
  void count_differs(const StoredLayer& stored, const std::vector<int>& parameters,
                     LoadedLayer* layer) {
    const std::string what =
        cat("the file has ", stored.blobs.size(), " blobs, the net ", parameters.size());
    // HDF5 files leave out parameters that belong to another layer.
    bool shared = stored.blobs.size() < parameters.size();
    for (size_t k = stored.blobs.size(); k < parameters.size(); ++k) {
      shared = shared && graph_.parameters[parameters[k]].layer != layer->name;
    }
    if (shared) return;
    require(options_.mode == WeightsMode::match, path_, ": layer \"", layer->name, "\": ", what,
            advice());
    note(layer, Outcome::skipped, what);
  }

  void load_blob(const StoredBlob& blob, int k, int id, LoadedLayer* layer) {
    if (blob.data.empty() && blob.shape.empty()) return;  // stored with its owner
    const Parameter& parameter = graph_.parameters[id];
    const Shape stored(blob.shape);
    const bool same_count = stored.count() == parameter.shape.count();
    bool equal = stored == parameter.shape;
    bool fits = equal;
    if (blob.legacy_axes) {
      equal = same_count && without_leading_ones(stored) == without_leading_ones(parameter.shape);
      fits = same_count;
    } else if (options_.mode == WeightsMode::match && same_count && stored.axes() > 0 &&
               parameter.shape.axes() > 0) {
      fits = equal ||
             stored[0] ==
                 parameter.shape[0];  // a fully connected layer that became a convolution, or back
    }
    const std::string shapes = cat("parameter ", k, " is ", stored.brief(), " in the file, ",
                                   parameter.shape.brief(), " in the net");
    require(fits || options_.mode == WeightsMode::match, path_, ": layer \"", layer->name,
            "\": ", shapes, advice());
    if (!fits) return note(layer, Outcome::skipped, shapes);
    if (equal) {
      note(layer, Outcome::loaded, parameter.shape.brief());
    } else {
      note(layer, Outcome::reshaped, cat(stored.brief(), " -> ", parameter.shape.brief()));
    }
    from_floats(net_.context(), blob.data.data(), parameter.data);
    loaded_.insert(id);
  }

  static std::string advice() {
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

}  // namespace

int LoadReport::count(Outcome outcome) const {
  return static_cast<int>(
      std::count_if(layers.begin(), layers.end(),
                    [&](const LoadedLayer& layer) { return layer.outcome == outcome; }));
}

LoadReport load_weights(Net& net, const std::string& path, const LoadOptions& options) {
  const bool hdf5 = is_hdf5(path);
  Loader loader(net, path, options, hdf5);
  if (hdf5) {
    read_hdf5_weights(path, [&](const StoredLayer& layer) { loader.load(layer); });
  } else {
    for (const StoredLayer& layer : read_caffemodel(path).layers) loader.load(layer);
  }
  LoadReport report = loader.finish();
  if (options.table) log_table(net.context().log(), report, path);
  return report;
}

}  // namespace crema
