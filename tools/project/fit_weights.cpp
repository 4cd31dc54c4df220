// The model of models/ that given weights fit.
#include <algorithm>
#include <array>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/files.h"
#include "data/databases/hdf5/hdf5_file.h"
#include "net/expand/expand.h"
#include "net/prototxt/prototxt.h"
#include "net/prototxt/settings.h"
#include "net/weights/weights_hdf5.h"
#include "net/weights/wire_reader.h"
#include "tools/project/project.h"

namespace crema {

namespace {

// Layers with weights, and the number of values of the first blob of each.
std::map<std::string, size_t> layers_with_weights(const std::string& path) {
  std::map<std::string, size_t> layers;
  const auto take = [&](const StoredLayer& layer) {
    if (!layer.blobs.empty()) layers[layer.name] = layer.blobs[0].data.size();
  };
  if (is_hdf5(path)) {
    read_hdf5_weights(path, take);
  } else {
    for (const StoredLayer& layer : read_caffemodel(path).layers) take(layer);
  }
  return layers;
}

// Families of models have a variable for their size.
constexpr const char* sizes[] = {"",           "depth=11",  "depth=13",  "depth=18",  "depth=19",
                                 "depth=34",   "depth=101", "depth=152", "depth=169", "depth=201",
                                 "size=small", "size=base", "n=3",       "n=5",       "n=7",
                                 "n=9",        "n=18"};

// How many layers of the net have weights of this name and, where the net's text says it, this number of outputs.
size_t matches(const std::string& path, const Variables& variables,
               const std::map<std::string, size_t>& layers) {
  const NetFile file = parse_net_text(expand(path, read_text(path), variables).text(), path);
  size_t count = 0;
  for (const LayerParameter& layer : file.net.layer()) {
    const auto found = layers.find(layer.name());
    if (found == layers.end()) continue;
    const size_t outputs = layer.has_convolution_param() ? layer.convolution_param().num_output()
                           : layer.has_inner_product_param()
                               ? layer.inner_product_param().num_output()
                               : 1;
    count += outputs > 0 && found->second % outputs == 0;
  }
  return count;
}

}  // namespace

ModelChoice model_for_weights(const std::string& weights) {
  const std::map<std::string, size_t> layers = layers_with_weights(weights);
  ModelChoice best;
  size_t most = 0;
  for (const std::string& model : list_folder(models_folder())) {
    const std::string folder = models_folder() + "/" + model, net = folder + "/train_val.prototxt";
    if (!file_exists(net) || !file_exists(folder + "/solver.prototxt")) continue;
    const std::string text = read_text(net);
    for (const char* setting : sizes) {
      const std::string name = "$" + std::string(setting).substr(0, std::string(setting).find('='));
      if (*setting && text.find(name + " ?=") == text.npos) continue;
      size_t count = 0;
      try {
        Settings settings(*setting ? std::vector<std::string>{setting}
                                   : std::vector<std::string>());
        count = matches(net, settings.variables(), layers);
      } catch (const Error&) {
        continue;  // the family has no such size
      }
      if (count <= most) continue;
      most = count;
      best.net = net;
      best.solver = folder + "/solver.prototxt";
      best.settings = *setting ? std::vector<std::string>{setting} : std::vector<std::string>();
      best.why = cat(count, " of the ", layers.size(), " layers of ", weights, " are its");
    }
  }
  require(most * 2 > layers.size(), weights, ": has the weights of no net in ", models_folder(),
          most > 0
              ? "; the nearest is " + std::filesystem::path(folder_of(best.net)).filename().string()
              : "",
          ": name their net with -model NET.prototxt");
  return best;
}

}  // namespace crema
