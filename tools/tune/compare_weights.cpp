#include "tools/tune/compare_weights.h"

#include <iostream>
#include <map>

#include "base/error.h"
#include "base/visible.h"
#include "data/databases/hdf5/hdf5_file.h"
#include "net/weights/tensor_file.h"
#include "net/weights/weights_hdf5.h"
#include "net/weights/wire_reader.h"
#include "tools/console/table.h"
#include "tools/tune/differences.h"

namespace crema {

namespace {

// By name, "conv1[0]", in the order of the file.
struct Weights {
  std::vector<std::string> names;
  std::map<std::string, StoredBlob> blobs;

  void add(const std::string& name, StoredBlob blob) {
    if (blob.data.empty() && blob.shape.empty()) return;  // HDF5: stored with its owner
    if (blobs.emplace(name, std::move(blob)).second) names.push_back(name);
  }
  // As HDF5 spells layers, so that files of both kinds agree.
  void add(const StoredLayer& layer) {
    if (layer.blobs.empty()) return;
    const std::string group = hdf5_group(layer.name);
    for (size_t k = 0; k < layer.blobs.size(); ++k) add(cat(group, "[", k, "]"), layer.blobs[k]);
  }
};

Weights read_weights(const std::string& path) {
  Weights weights;
  if (is_hdf5(path)) {
    read_hdf5_weights(path, [&](const StoredLayer& layer) { weights.add(layer); });
  } else if (ends_with(path, ".safetensors") || ends_with(path, ".pth") || ends_with(path, ".pt")) {
    const auto file = open_tensor_file(path);
    for (const auto& [name, entry] : file->entries())
      weights.add(name, {entry.shape.dims(), file->values(name)});
  } else {
    for (const StoredLayer& layer : read_caffemodel(path).layers) weights.add(layer);
  }
  require(!weights.names.empty(), path, ": has no weights");
  return weights;
}

// Old files have four axes whatever the blob has: leading ones do not count.
std::vector<int64_t> without_ones(const StoredBlob& blob) {
  std::vector<int64_t> shape = blob.shape;
  while (!shape.empty() && shape[0] == 1) shape.erase(shape.begin());
  return shape;
}

bool same_shape(const StoredBlob& a, const StoredBlob& b) {
  return a.legacy_axes || b.legacy_axes ? without_ones(a) == without_ones(b) : a.shape == b.shape;
}

std::string brief(const StoredBlob& blob) { return Shape(blob.shape).brief(); }

void print_missing(const Weights& there, const Weights& here, const std::string& path) {
  std::vector<std::string> missing;
  for (const std::string& name : there.names) {
    if (!here.blobs.count(name)) missing.push_back(cat(name, " ", brief(there.blobs.at(name))));
  }
  if (!missing.empty())
    std::cout << "Only in " << visible(path) << ": " << visible(join(missing, ", ")) << "\n";
}

}  // namespace

void compare_weights(const std::string& path_a, const std::string& path_b) {
  const Weights a = read_weights(path_a), b = read_weights(path_b);
  struct Row {
    std::string name, shape;
    Difference difference;
  };
  std::vector<Row> rows;
  std::vector<std::string> other_shapes;
  size_t same = 0, common = 0;
  for (const std::string& name : a.names) {
    const auto at = b.blobs.find(name);
    if (at == b.blobs.end()) continue;
    ++common;
    const StoredBlob& blob = a.blobs.at(name);
    if (!same_shape(blob, at->second)) {
      other_shapes.push_back(cat(name, " (", brief(blob), " and ", brief(at->second), ")"));
      continue;
    }
    const Difference difference = difference_of(blob.data, at->second.data);
    same += difference.same;
    if (!difference.same) rows.push_back({name, brief(blob), difference});
  }
  // NaN first.
  std::stable_sort(rows.begin(), rows.end(), [](const Row& x, const Row& y) {
    const double of_x = x.difference.relative, of_y = y.difference.relative;
    return std::isnan(of_x) != std::isnan(of_y) ? std::isnan(of_x) : of_x > of_y;
  });
  std::vector<std::vector<std::string>> table = {
      {"parameter", "shape", "relative difference", "largest difference"}};
  for (const Row& row : rows) {
    table.push_back({row.name, row.shape, shown_difference(row.difference.relative, false),
                     shown_difference(row.difference.largest, false)});
  }
  if (!rows.empty()) print_table(table, 2);
  std::cout << common << " parameters are in both files: " << same << " are the same bit for bit, "
            << rows.size() << " differ";
  if (!other_shapes.empty()) std::cout << ", " << other_shapes.size() << " have other shapes";
  std::cout << ".\n";
  if (!other_shapes.empty())
    std::cout << "Other shapes: " << visible(join(other_shapes, ", ")) << "\n";
  print_missing(a, b, path_a);
  print_missing(b, a, path_b);
}

}  // namespace crema
