#include "net/weights/weights_hdf5.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "data/databases/given_file.h"
#include "data/databases/hdf5/hdf5_file.h"
#include "data/databases/hdf5/hdf5_writer.h"
#include "net/weights/weights.h"

namespace crema {
namespace {

// The k-th parameter of a layer; null when another layer owns it.
const WeightsContent::Values* owned(const WeightsContent& content, int layer, size_t k) {
  const WeightsContent::Values& values = content.parameters[content.parameters_of_layer[layer][k]];
  const bool owns =
      values.layer == content.net.layer(layer).name() && values.index == static_cast<int>(k);
  return owns ? &values : nullptr;
}

void write_parameter(Context& context, const Tensor& tensor, const std::string& name,
                     Hdf5Writer* file) {
  if (tensor.dtype() == DType::f64) {
    file->doubles(name, tensor.shape(), to_doubles(context, tensor).data());
  } else {
    file->floats(name, tensor.shape(), to_floats(context, tensor).data());
  }
}

// The number in a dataset's name, or -1.
int index_of(const std::string& name) {
  const bool digits =
      !name.empty() && name.size() < 6 &&
      std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
  return digits ? std::stoi(name) : -1;
}

// Nesting limit of groups: no net's layers have that many '/' in their names.
constexpr int kMaxGroups = 32;

class Visit {
 public:
  Visit(const Hdf5File& file, const std::string& path,
        const std::function<void(const StoredLayer&)>& found)
      : file_(file), path_(path), found_(found) {}

  // A group is a layer if it has datasets, or nothing at all; groups inside it belong to layers
  // with a '/' in their names.
  void group(const std::string& group_name, int depth) {
    const std::string group = "data" + (group_name.empty() ? "" : "/" + group_name);
    StoredLayer layer;
    layer.name = group_name;
    std::vector<std::string> inside;
    for (const Hdf5File::Child& child : file_.children(group)) {
      const std::string name = group + "/" + child.name;
      // Links can make a group contain itself, which would never end.
      require(child.identity == 0 || seen_.insert(child.identity).second, path_, ": \"", name,
              "\" has a second name in this file; each layer and parameter of weights is stored "
              "once");
      if (child.group) {
        inside.push_back(child.name);
        continue;
      }
      const int k = index_of(child.name);
      if (k < 0) continue;
      if (k >= static_cast<int>(layer.blobs.size())) layer.blobs.resize(k + 1);
      layer.blobs[k].shape = file_.shape(name).dims();
      layer.blobs[k].data = file_.floats(name);
    }
    if (!group_name.empty() && (!layer.blobs.empty() || inside.empty())) found_(layer);
    require(inside.empty() || depth < kMaxGroups, path_, ": \"", group, "\" is the last of ",
            kMaxGroups, " groups inside each other, and holds more: these are not weights");
    for (const std::string& name : inside)
      this->group(group_name.empty() ? name : group_name + "/" + name, depth + 1);
  }

 private:
  const Hdf5File& file_;
  const std::string& path_;
  const std::function<void(const StoredLayer&)>& found_;
  std::set<uint64_t> seen_;
};

// Error when two layers would share a path in the file.
void check_names(const WeightsContent& content) {
  std::set<std::string> groups, datasets;
  for (int i = 0; i < content.net.layer_size(); ++i) {
    const std::string& name = content.net.layer(i).name();
    const std::string group_name = hdf5_group(name);
    require(groups.insert(group_name).second, "two layers would be stored as \"", group_name,
            "\" in an HDF5 file: give layer \"", name,
            "\" another name, or write snapshot_format: BINARYPROTO");
    for (size_t k = 0; k < content.parameters_of_layer[i].size(); ++k) {
      if (owned(content, i, k)) datasets.insert(cat(group_name, "/", k));
    }
  }
  for (const std::string& group : groups) {
    for (size_t end = group.find('/');; end = group.find('/', end + 1)) {
      require(datasets.count(group.substr(0, end)) == 0, "layer \"", group,
              "\" would be stored where parameter \"", group.substr(0, end),
              "\" of another layer is in an HDF5 file: give it another name, or write "
              "snapshot_format: BINARYPROTO");
      if (end == std::string::npos) break;
    }
  }
}

}  // namespace

std::string hdf5_group(const std::string& layer) {
  std::vector<std::string> parts;
  for (const std::string& part : split(layer, '/')) {
    if (!part.empty() && part != ".") parts.push_back(part);
  }
  require(!parts.empty(), "layer \"", layer,
          "\" has a name that an HDF5 file cannot hold: give it another, or write "
          "snapshot_format: BINARYPROTO");
  return join(parts, "/");
}

void read_hdf5_weights(const std::string& path,
                       const std::function<void(const StoredLayer&)>& found) {
  const Hdf5File file(path);
  if (!file.has("data"))
    fail(path, ": is an HDF5 file, but not one of weights: it has no group \"data\"",
         what_it_is(path));
  Visit(file, path, found).group("", 1);
}

void check_hdf5_names(const Net& net) { check_names(weights_content(net)); }

void save_hdf5(Net& net, const std::string& path, bool gradients) {
  write_hdf5(net.context(), weights_content(net, gradients), path);
}

void write_hdf5(Context& context, const WeightsContent& content, const std::string& path) {
  check_names(content);
  const bool gradients =
      std::any_of(content.parameters.begin(), content.parameters.end(),
                  [](const WeightsContent::Values& values) { return bool(values.diff); });
  Hdf5Writer file(path);
  file.group("data");
  if (gradients) file.group("diff");
  for (int i = 0; i < content.net.layer_size(); ++i) {
    const std::string group_name = hdf5_group(content.net.layer(i).name());
    file.group("data/" + group_name);
    if (gradients) file.group("diff/" + group_name);
    for (size_t k = 0; k < content.parameters_of_layer[i].size(); ++k) {
      const WeightsContent::Values* const values = owned(content, i, k);
      if (!values) continue;
      write_parameter(context, values->data, cat("data/", group_name, "/", k), &file);
      if (values->diff)
        write_parameter(context, values->diff, cat("diff/", group_name, "/", k), &file);
    }
  }
  file.commit();
}

}  // namespace crema
