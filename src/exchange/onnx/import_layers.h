// ImportLinks: who makes and who reads the blobs of imported layers, while patterns change them.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "exchange/onnx/import_graph.h"
#include "proto/params/activation.pb.h"
#include "proto/params/convolution.pb.h"
#include "proto/params/dense.pb.h"
#include "proto/params/pointwise.pb.h"

namespace crema {

class ImportLinks {
 public:
  // Blobs in `kept` are results of the net.
  ImportLinks(ImportGraph& graph, const std::set<std::string>& kept);

  size_t size() const { return graph_.layers.size(); }
  ImportedLayer* at(size_t i) { return &graph_.layers[i]; }
  const Shape& shape(const std::string& blob) const { return graph_.shape_of(blob); }

  // Null: none, or an input.
  ImportedLayer* maker(const std::string& blob);
  // Null: there are several, or none, or the blob is a result.
  ImportedLayer* only_reader(const std::string& blob);

  // The first layer makes the second one's top, and the second one disappears.
  void join(ImportedLayer* first, ImportedLayer* second);
  void replace(ImportedLayer* layer, LayerParameter&& message, std::vector<LayerBlob>&& blobs);
  // The second layer reads the first one's bottom, and the first one disappears.
  void skip(ImportedLayer* first, ImportedLayer* second);

 private:
  void index();

  ImportGraph& graph_;
  const std::set<std::string>& kept_;
  std::map<std::string, size_t> maker_;
  std::map<std::string, std::vector<size_t>> readers_;
};

}  // namespace crema
