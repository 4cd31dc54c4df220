// What a program sets in a net: values and shapes of the blobs that no layer computes.
#include <algorithm>

#include "device/memory.h"
#include "device/staging.h"
#include "kernels/move/reorder.h"
#include "net/graph/graph_builder.h"
#include "net/net.h"
#include "net/plan/plan.h"
#include "tensor/part.h"

namespace crema {

int Net::find_source(const std::string& name) const {
  for (size_t id = 0; id < graph_.values.size(); ++id) {
    if (graph_.values[id].blob == name) return static_cast<int>(id);
  }
  fail("net \"", this->name(), "\" has no blob \"", name, "\"");
}

Tensor Net::input(const std::string& name) { return ready().value(find_source(name)); }
Tensor Net::input_diff(const std::string& name) { return ready().diff(find_source(name)); }

// The content of Inputs, which stays until a program sets them again.
std::vector<std::pair<int, Tensor>> Net::input_values() const {
  std::vector<std::pair<int, Tensor>> all;
  if (!plan_ || !plan_->bound()) return all;
  for (const Node& node : graph_.nodes) {
    if (node.message.type() != "Input") continue;
    for (const int id : node.tops) all.emplace_back(id, plan_->value(id));
  }
  return all;
}

void Net::set_input(const std::string& name, const float* values) {
  const Tensor to = input(name);
  const auto bytes = static_cast<size_t>(to.count()) * sizeof(float);
  const bool room = (uploaded_ && uploaded_.bytes() >= bytes) || bytes <= free_memory(context_);
  if (context_.device() == Device::cpu || to.dtype() == DType::f64 || !room)
    return from_floats(context_, values, to);
  if (!upload_) upload_ = std::make_unique<Upload>(context_);
  if (to.dtype() == DType::f32 && same_layout(to.format(), Format::row_major(), to.shape()))
    return upload_->copy(to.raw(), values, bytes);
  if (!uploaded_ || uploaded_.bytes() < bytes) uploaded_ = Tensor(context_, to.shape(), DType::f32);
  const Tensor plain = part_of(uploaded_, 0, to.shape(), DType::f32);
  upload_->copy(plain.raw(), values, bytes);
  reorder(context_, plain, to);
}

// False if the layer is not an Input with this blob.
bool Net::set_input_shape(LayerParameter& layer, const std::string& blob, const Shape& shape) {
  const auto found = std::find(layer.top().begin(), layer.top().end(), blob);
  if (layer.type() != "Input" || found == layer.top().end()) return false;
  InputParameter* input = layer.mutable_input_param();
  while (input->shape_size() < layer.top_size()) *input->add_shape() = input->shape(0);
  BlobShape* const to = input->mutable_shape(static_cast<int>(found - layer.top().begin()));
  to->clear_dim();
  for (const int64_t extent : shape.dims()) to->add_dim(extent);
  return true;
}

void Net::set_input_shape(const std::string& blob, const Shape& shape) {
  for (Node& node : graph_.nodes) {
    for (size_t j = 0; j < node.tops.size(); ++j) {
      if (graph_.values[node.tops[j]].blob != blob) continue;
      require(node.message.type() == "Input", "only blobs of Input layers can be reshaped; \"",
              blob, "\" is made by layer \"", node.message.name(), "\" of type ",
              node.message.type());
      set_input_shape(node.message, blob, shape);
      node.layer = make_layer(node.message, training(), options_.folder);
      node.layer->setup(context_, {});
      return;
    }
  }
  fail("net \"", name(), "\" has no input blob \"", blob, "\"");
}

void Net::reshape(const std::string& blob, const Shape& shape) { reshape({{blob, shape}}); }

void Net::reshape(const std::vector<std::pair<std::string, Shape>>& shapes) {
  for (const auto& [blob, shape] : shapes) set_input_shape(blob, shape);
  infer_shapes(graph_);
  set_plan_aside();
}

void Net::reshape(const std::vector<std::pair<std::string, Shape>>& shapes, int first, int last) {
  const Shapes before = this->shapes();
  try {
    for (const auto& [blob, shape] : shapes) set_input_shape(blob, shape);
    infer_shapes(graph_, first, last);
  } catch (...) {
    restore(before);
    throw;
  }
  drop_plans();
}

Net::Shapes Net::shapes() const {
  Shapes now;
  for (const Value& value : graph_.values) now.values.push_back(value.shape);
  for (const Node& node : graph_.nodes) now.stale.push_back(node.stale);
  return now;
}

void Net::restore(const Shapes& shapes) {
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    Node& node = graph_.nodes[i];
    for (const int id : node.tops) {
      const Value& value = graph_.values[id];
      if (node.message.type() == "Input" && value.shape != shapes.values[id])
        set_input_shape(value.blob, shapes.values[id]);
    }
    node.stale = shapes.stale[i];
    std::vector<Shape> bottoms;
    for (const int id : node.bottoms) bottoms.push_back(shapes.values[id]);
    if (!node.stale) node.layer->infer(bottoms);  // a Python object remembers them
  }
  for (size_t id = 0; id < graph_.values.size(); ++id) graph_.values[id].shape = shapes.values[id];
  drop_plans();
}

}  // namespace crema
