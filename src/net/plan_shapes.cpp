// Shapes that depend on data: the steps after a dynamic layer get tensors of the shapes that it
// gave, in the memory that was planned for the largest, and kernels for them.
#include "device/untuned.h"
#include "net/graph_builder.h"
#include "net/plan.h"

namespace crema {

void Plan::mark_followers() {
  std::vector<bool> varies(values.size(), false);
  for (PlanNode& node : nodes) {
    node.dynamic = node.layer->dynamic();
    for (int id : node.bottoms) {
      node.follows = node.follows || varies[id];
      node.bottom_shapes.push_back(values[id].shape);
    }
    for (int id : node.tops) varies[id] = node.dynamic || node.follows;
  }
}

bool Plan::take_shapes(Context& context, PlanNode& node, const std::vector<Parameter>& parameters) {
  const std::vector<Shape> shapes = node.layer->dynamic_tops();
  bool changed = false;
  node.idle = true;
  for (size_t j = 0; j < node.tops.size(); ++j) {
    Shape& shape = values[node.tops[j]].shape;
    changed = changed || shape != shapes[j];
    shape = shapes[j];
    node.idle = node.idle && shape.count() == 0;
  }
  if (!changed) return false;
  std::vector<PlanNode*> to_bind = {&node};
  bool seeds_moved = false;
  for (PlanNode* next = &node + 1; next != nodes.data() + nodes.size(); ++next) {
    if (!next->follows) continue;
    at_layer(nullptr, 0, next->message.name(), [&] {
      if (!follow(context, *next)) return;
      seeds_moved = make_room(context, *next) || seeds_moved;
      to_bind.push_back(next);
    });
  }
  if (seeds_moved) fill_seeds(context);
  for (PlanNode* changed_node : to_bind) bind(*changed_node, parameters);
  for (PlanNode& any : nodes) bind_again(any);
  return true;
}

// Infers the shapes of the node's tops, and prepares it for them unless it has nothing to do. False
// when its bottoms are what they were.
bool Plan::follow(Context& context, PlanNode& node) {
  std::vector<Shape> bottoms;
  for (int id : node.bottoms) bottoms.push_back(values[id].shape);
  if (bottoms == node.bottom_shapes) return false;
  node.bottom_shapes = bottoms;
  Preparation& p = node.preparation;
  const std::vector<Shape> tops = node.layer->infer(bottoms).tops;
  if (!node.dynamic) {
    bool empty = true;
    for (size_t j = 0; j < node.tops.size(); ++j) {
      values[node.tops[j]].shape = tops[j];
      empty = empty && tops[j].count() == 0;
    }
    node.idle = empty || (bottoms[0].count() == 0 && !node.layer->joins_bottoms());
    if (node.idle) return true;
  }
  if (bottoms == p.bottoms) return true;
  p.bottoms = bottoms;
  p.tops = tops;
  for (size_t k = 0; k < node.parameters.size(); ++k)
    p.parameter_formats[k] = parameter_formats[node.parameters[k]];
  const Untuned untuned(context);  // other shapes may come with each pass
  prepare_node(context, *this, node);
  return true;
}

// True when the memory of a gradient's start moved.
bool Plan::make_room(Context& context, PlanNode& node) {
  bool moved = false;
  const auto hold = [&](int storage, size_t bytes) {
    moved = make_room(context, storage, bytes) || moved;
  };
  for (int id : node.tops) {
    const PlanValue& v = values[id];
    for (int storage : {v.storage, v.diff_storage, v.again_storage, v.seed_storage})
      hold(storage, v.bytes());
  }
  for (size_t j = 0; j < node.bottoms.size(); ++j)
    hold(node.bottom_diff_storage[j], values[node.bottoms[j]].bytes());
  for (size_t k = 0; k < node.saved.size(); ++k) {
    if (k == node.saved_storage.size()) {
      node.saved_storage.push_back(static_cast<int>(storages.size()));
      storages.emplace_back();
    }
    const TensorSpec& spec = node.saved[k];
    hold(node.saved_storage[k],
         static_cast<size_t>(spec.shape.count()) * size_of(spec.dtype.value_or(options.dtype)));
  }
  for (int storage : {node.forward_workspace, node.backward_workspace})
    hold(storage, node.prepared.workspace);
  if (!aside_storages.empty() && node.aside_lane != Context::kHere)
    hold(aside_storages[node.aside_lane], node.prepared.workspace);
  return moved;
}

// Nothing computed yet in this pass lies in the storage: only tops of later steps grow.
bool Plan::make_room(Context& context, int storage, size_t bytes) {
  if (storage < 0 || bytes <= storages[storage].bytes) return false;
  Storage& s = storages[storage];
  s.bytes = bytes;
  s.own = std::make_shared<Buffer>(context, bytes);
  return s.persistent;
}

}  // namespace crema
