#include "exchange/onnx/import_patterns.h"

#include <algorithm>
#include <map>

namespace crema {

namespace {

// The layers as a graph, in which groups are found.
class Patterns {
 public:
  Patterns(ImportGraph& graph, const std::set<std::string>& kept) : graph_(graph), kept_(kept) {}

  void apply() { flatten_into_product(); }

 private:
  using Index = size_t;

  int readers_of(const std::string& blob) const {
    int readers = kept_.count(blob) > 0 ? 1 : 0;
    for (const ImportedLayer& layer : graph_.layers)
      for (const std::string& bottom : layer.message.bottom()) readers += bottom == blob;
    return readers;
  }
  LayerParameter* only_reader(const std::string& blob) {
    if (readers_of(blob) != 1 || kept_.count(blob) > 0) return nullptr;
    for (ImportedLayer& layer : graph_.layers)
      for (const std::string& bottom : layer.message.bottom())
        if (bottom == blob) return &layer.message;
    return nullptr;
  }

  void flatten_into_product() {}

  ImportGraph& graph_;
  const std::set<std::string>& kept_;
};

}  // namespace

void apply_import_patterns(ImportGraph& graph, const std::set<std::string>& kept) {
  Patterns(graph, kept).apply();
}

}  // namespace crema
