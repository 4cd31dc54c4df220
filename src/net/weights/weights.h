// Loads and saves the weights of a net: .caffemodel (Caffe's binary) and .h5 (Caffe's HDF5 layout,
// data/LAYER/INDEX), matched by layer name.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "net/net.h"

namespace crema {

// What to do if stored blobs do not fit the layer of the same name: refuse (as Caffe), or leave
// that layer unchanged. match also loads blobs that have the same values in another shape, and
// weights without their bias.
enum class WeightsMode { strict, match };

struct LoadOptions {
  WeightsMode mode = WeightsMode::strict;
  // Also log what Caffe has no lines for: the table and its summary. Caffe's own lines are always
  // logged.
  bool table = true;
};

// The outcome for one layer that has parameters.
struct LoadedLayer {
  enum class Outcome {
    loaded,
    reshaped,  // loaded; at least one blob had another shape with the same count
    skipped,   // in the file, but at least one blob did not fit, so none was loaded (match)
    missing,   // not in the file: keeps its initial values
  };
  std::string name;
  Outcome outcome = Outcome::loaded;
  std::string detail;  // shapes
};

struct LoadReport {
  std::vector<LoadedLayer> layers;   // the net's layers with parameters, in its order
  std::vector<std::string> ignored;  // layers of the file that the net does not have
  int count(LoadedLayer::Outcome outcome) const;
};

// The file format is detected from the content. Error when a blob does not fit (strict), when the
// file is damaged, and when none of its blobs was loaded into the net. Logs "Ignoring source layer
// NAME" as Caffe does.
LoadReport load_weights(Net& net, const std::string& path, const LoadOptions& options = {});
// The same for the content of a .caffemodel in memory; `name` replaces the path in messages. Error
// for HDF5, which is read from files only.
LoadReport load_weights_content(Net& net, std::string_view content, const std::string& name,
                                const LoadOptions& options = {});

// The contents of a weights file: the layers, and where their values are.
struct WeightsContent {
  struct Values {
    std::string layer;  // owner
    int index = 0;      // which parameter of the owner
    Tensor data, diff;  // diff is empty where gradients are not wanted
  };
  NetParameter net;                // as Caffe has it after setting up, without blobs
  std::vector<Values> parameters;  // in the order of Net::parameters()
  std::vector<std::vector<int>> parameters_of_layer;  // for each layer of `net`
};
// The values are the net's own: they change as it trains.
WeightsContent weights_content(const Net& net, bool gradients = false);
// Indices of the parameters that a file holds: not those of layers with stored: false.
std::set<int> stored_parameters(const WeightsContent& content);
// Bytes of the values in its file. In HDF5 a blob that several layers share is stored once.
uint64_t bytes_of_values(const WeightsContent& content, bool hdf5);

// Saves all layers with names, types, connections and blobs under Caffe's public field numbers;
// written atomically. gradients: the blobs' diffs too (snapshot_diff). Error above 2 GiB, the limit
// of the format.
void save_caffemodel(Net& net, const std::string& path, bool gradients = false);
void write_caffemodel(Context& context, const WeightsContent& content, const std::string& path);

// Saves the HDF5 file that Caffe writes. A blob that several layers share is stored with its owner.
// No size limit.
void save_hdf5(Net& net, const std::string& path, bool gradients = false);
void write_hdf5(Context& context, const WeightsContent& content, const std::string& path);
// Error when two layers would share a path in such a file ("a" with a parameter and "a/0").
void check_hdf5_names(const Net& net);

}  // namespace crema
