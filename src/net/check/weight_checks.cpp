// Checks of weights against the net that they are for, by the names of layers.
#include <set>

#include "base/error.h"
#include "data/databases/hdf5/hdf5_file.h"
#include "net/check/checks.h"
#include "net/weights/weights_hdf5.h"
#include "net/weights/wire_reader.h"

namespace crema {
namespace {

// A few names for a message.
std::string some(const std::vector<std::string>& names) {
  constexpr size_t kShown = 5;
  if (names.size() <= kShown) return join(names, ", ");
  return cat(join({names.begin(), names.begin() + kShown}, ", "), " and ", names.size() - kShown,
             " more");
}

}  // namespace

void check_weights(const CheckedNet& net, const std::string& path, const std::string& where,
                   Findings* findings) {
  const bool hdf5 = is_hdf5(path);
  std::set<std::string> own;
  for (int i = 0; i < net.layers(); ++i)
    own.insert(hdf5 ? hdf5_group(net.layer(i).name()) : net.layer(i).name());
  std::vector<std::string> unknown;
  size_t known = 0;
  const auto look = [&](const StoredLayer& layer) {
    if (layer.blobs.empty()) return;
    own.count(layer.name) > 0 ? void(++known) : unknown.push_back(layer.name);
  };
  if (hdf5) {
    read_hdf5_weights(path, look);
  } else {
    for (const StoredLayer& layer : read_caffemodel(path).layers) look(layer);
  }
  if (unknown.empty()) return;
  if (known == 0) {
    add(findings, Severity::error, where, path, ": no layer of these weights (", some(unknown),
        ") is in the net, as layers are matched by name: give the net's layers the names of the "
        "file, or train without -weights");
    return;
  }
  add(findings, Severity::info, where, path, ": ", unknown.size(), " of ", unknown.size() + known,
      " layers with weights are not in the net and are left out: ", some(unknown),
      "; where that is not meant, give the net's layer the name in the file");
}

}  // namespace crema
