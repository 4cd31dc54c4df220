#include "exchange/onnx/import_graph.h"

#include "layers/layer.h"

namespace crema {

std::string ImportGraph::unique(const std::string& wish, std::set<std::string>* taken) {
  std::string name = wish;
  for (int number = 2; !taken->insert(name).second; ++number) name = cat(wish, "_", number);
  return name;
}

ImportedLayer* ImportGraph::add(const std::string& type, const std::string& name,
                                const std::vector<std::string>& bottoms,
                                const std::vector<std::string>& tops, const FillLayer& fill,
                                std::vector<LayerBlob> blobs) {
  ImportedLayer added;
  LayerParameter& message = added.message;
  message.set_name(name);
  message.set_type(type);
  std::vector<Shape> shapes;
  for (const std::string& bottom : bottoms) {
    message.add_bottom(bottom);
    shapes.push_back(shape_of(bottom));
  }
  for (const std::string& top : tops) message.add_top(top);
  if (fill) fill(&message);
  const std::unique_ptr<Layer> layer = make_layer(message, false);
  layer->setup(context_, shapes);
  const Inference inference = layer->infer(shapes);
  for (size_t i = 0; i < tops.size(); ++i) shapes_[tops[i]] = inference.tops[i];
  added.blobs = std::move(blobs);
  added.node = node;
  layers.push_back(std::move(added));
  return &layers.back();
}

void ImportGraph::add_unsupported(const std::string& type, const std::string& name,
                                  const std::vector<std::string>& bottoms, const std::string& top,
                                  const Shape& shape, const std::string& why) {
  ImportedLayer added;
  added.message.set_name(name);
  added.message.set_type(type);
  for (const std::string& bottom : bottoms) added.message.add_bottom(bottom);
  added.message.add_top(top);
  added.unsupported = why;
  added.node = node;
  shapes_[top] = shape;
  layers.push_back(std::move(added));
}

ImportedLayer* ImportGraph::maker_of(const std::string& blob) {
  for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer)
    for (const std::string& top : layer->message.top())
      if (top == blob) return &*layer;
  return nullptr;
}

void ImportGraph::rename_top(const std::string& from, const std::string& to) {
  for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
    for (std::string& bottom : *layer->message.mutable_bottom())
      if (bottom == from) bottom = to;
    bool made = false;
    for (std::string& top : *layer->message.mutable_top()) {
      if (top != from) continue;
      top = to;
      made = true;
    }
    if (made) break;
  }
  shapes_[to] = shapes_.at(from);
  shapes_.erase(from);
}

}  // namespace crema
