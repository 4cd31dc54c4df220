// Weights in and out of a net: .caffemodel (Caffe's binary) and .h5 (Caffe's HDF5 layout,
// data/LAYER/INDEX), matched by the names of the layers.
#pragma once

#include <string>
#include <vector>

#include "net/net.h"

namespace crema {

// What to do where a stored blob does not fit the layer of the same name: refuse (as Caffe), or
// leave that blob as it is.
enum class WeightsMode { strict, match };

struct LoadOptions {
  WeightsMode mode = WeightsMode::strict;
  // Log lines for what Caffe has no words for: the table and its summary. Caffe's own lines come in
  // any case.
  bool table = true;
};

// What became of one layer that has parameters.
struct LoadedLayer {
  enum class Outcome {
    loaded,
    reshaped,  // loaded; at least one blob had another shape of the same count
    skipped,   // in the file, but at least one blob did not fit (WeightsMode::match)
    missing,   // not in the file: keeps its first values
  };
  std::string name;
  Outcome outcome = Outcome::loaded;
  std::string detail;  // shapes
};

struct LoadReport {
  std::vector<LoadedLayer> layers;   // of the net, with parameters, in its order
  std::vector<std::string> ignored;  // layers of the file that the net does not have
  int count(LoadedLayer::Outcome outcome) const;
};

// The kind of the file is told by its content. Error when a blob does not fit (strict), when the
// file is damaged, and when not one blob of it went into the net. Logs "Ignoring source layer NAME"
// as Caffe does.
LoadReport load_weights(Net& net, const std::string& path, const LoadOptions& options = {});

// All layers with names, types, connections and blobs under Caffe's public field numbers; appears
// whole or not at all. gradients: the blobs' diffs too (snapshot_diff). Error above 2 GiB, the
// limit of the format.
void save_caffemodel(Net& net, const std::string& path, bool gradients = false);

// The HDF5 file that Caffe writes. A blob that several layers share is stored with its owner. No
// limit of size.
void save_hdf5(Net& net, const std::string& path, bool gradients = false);
// Error when two layers would share a place in such a file ("a" with a parameter and "a/0").
void check_hdf5_names(const Net& net);

}  // namespace crema
