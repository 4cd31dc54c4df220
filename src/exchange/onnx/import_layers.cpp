#include "exchange/onnx/import_layers.h"

namespace crema {

ImportLinks::ImportLinks(ImportGraph& graph, const std::set<std::string>& kept)
    : graph_(graph), kept_(kept) {
  index();
}

void ImportLinks::index() {
  maker_.clear();
  readers_.clear();
  for (size_t i = 0; i < size(); ++i) {
    const LayerParameter& message = at(i)->message;
    for (const std::string& top : message.top()) maker_[top] = i;
    for (const std::string& bottom : message.bottom()) {
      std::vector<size_t>& readers = readers_[bottom];
      if (readers.empty() || readers.back() != i) readers.push_back(i);
    }
  }
}

ImportedLayer* ImportLinks::maker(const std::string& blob) {
  const auto found = maker_.find(blob);
  return found == maker_.end() ? nullptr : at(found->second);
}

ImportedLayer* ImportLinks::only_reader(const std::string& blob) {
  const auto found = readers_.find(blob);
  if (found == readers_.end() || found->second.size() != 1 || kept_.count(blob) > 0) return nullptr;
  return at(found->second[0]);
}

void ImportLinks::join(ImportedLayer* first, ImportedLayer* second) {
  const std::string gone = first->message.top(0), top = second->message.top(0);
  first->message.set_top(0, top);
  first->node += ", " + second->node;
  second->message.clear_bottom();
  second->message.clear_top();  // nothing reads it, so it is removed
  readers_.erase(gone);
  maker_.erase(gone);
  maker_[top] = static_cast<size_t>(first - graph_.layers.data());
}

void ImportLinks::replace(ImportedLayer* layer, LayerParameter&& message,
                          std::vector<LayerBlob>&& blobs) {
  layer->message.Swap(&message);
  layer->blobs = std::move(blobs);
  layer->unsupported.clear();
  index();
}

void ImportLinks::skip(ImportedLayer* first, ImportedLayer* second) {
  second->message.set_bottom(0, first->message.bottom(0));
  first->message.clear_bottom();
  first->message.clear_top();
  index();
}

}  // namespace crema
