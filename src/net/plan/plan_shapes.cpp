// Shapes that depend on data: the steps after a dynamic layer get tensors of the shapes that it
// produced, in the memory that was planned for the largest ones, and kernels for them.
#include "net/graph/graph_builder.h"
#include "net/plan/plan.h"

namespace crema {

void Plan::mark_dynamic_shapes() {
  std::vector<bool> varies(values.size(), false);
  for (PlanNode& node : nodes) {
    if (node.stale) continue;
    node.shapes.dynamic = node.layer->traits().dynamic;
    for (int id : node.bottoms) {
      node.shapes.depends_on_dynamic = node.shapes.depends_on_dynamic || varies[id];
      node.shapes.bottoms.push_back(values[id].shape);
    }
    for (int id : node.tops) varies[id] = node.shapes.dynamic || node.shapes.depends_on_dynamic;
  }
}

bool Plan::apply_dynamic_shapes(Context& context, PlanNode& node,
                                const std::vector<Parameter>& parameters) {
  const std::vector<Shape> shapes = state_of<DynamicTops>(node.arguments.forward).tops;
  bool changed = false;
  node.shapes.idle = true;
  for (size_t j = 0; j < node.tops.size(); ++j) {
    Shape& shape = values[node.tops[j]].shape;
    changed = changed || shape != shapes[j];
    shape = shapes[j];
    node.shapes.idle = node.shapes.idle && shape.count() == 0;
  }
  if (!changed) return false;
  std::vector<PlanNode*> to_bind = {&node};
  bool seeds_moved = enlarge_tops(context, node, parameters);
  for (PlanNode* next = &node + 1; next != nodes.data() + nodes.size(); ++next) {
    if (!next->shapes.depends_on_dynamic) continue;
    at_layer(next->place, [&] {
      if (!update_shapes(context, *next)) return;
      seeds_moved = grow_storage(context, *next) || seeds_moved;
      to_bind.push_back(next);
    });
  }
  if (seeds_moved) fill_seeds(context);
  for (PlanNode* changed_node : to_bind) bind(*changed_node, parameters);
  for (PlanNode& any : nodes) bind_recomputed(any);
  return true;
}

// If a dynamic node's tops need more memory than they have: gives it to them and lets the node fill
// it. True if a seed has moved.
bool Plan::enlarge_tops(Context& context, PlanNode& node,
                        const std::vector<Parameter>& parameters) {
  bool larger = false;
  for (size_t j = 0; j < node.tops.size(); ++j) {
    const Shape& shape = values[node.tops[j]].shape;
    Shape& given = node.preparation.tops[j];
    if (shape.count() <= given.count()) continue;
    given = shape;
    larger = true;
  }
  if (!larger) return false;
  const bool moved = grow_storage(context, node);
  bind(node, parameters);
  node.layer->forward(context, node.arguments.forward);
  return moved;
}

// Infers the shapes of the node's tops, and prepares the node for them unless it has nothing to do.
// False when its bottoms have not changed.
bool Plan::update_shapes(Context& context, PlanNode& node) {
  std::vector<Shape> bottoms;
  for (int id : node.bottoms) bottoms.push_back(values[id].shape);
  if (bottoms == node.shapes.bottoms) return false;
  node.shapes.bottoms = bottoms;
  Preparation& p = node.preparation;
  const std::vector<Shape> tops = node.layer->infer(bottoms).tops;
  if (!node.shapes.dynamic) {
    bool empty = true;
    for (size_t j = 0; j < node.tops.size(); ++j) {
      values[node.tops[j]].shape = tops[j];
      empty = empty && tops[j].count() == 0;
    }
    node.shapes.idle =
        empty || (bottoms[0].count() == 0 && !node.layer->traits().copies_elements());
    if (node.shapes.idle) return true;
  }
  if (bottoms == p.bottoms) return true;
  p.bottoms = bottoms;
  p.tops = tops;
  if (node.folding >= 0)
    p.parameter_formats = {foldings[node.folding].weights.format,
                           foldings[node.folding].bias.format};
  for (size_t k = 0; k < node.parameters.size() && node.folding < 0; ++k)
    p.parameter_formats[k] = parameter_formats[node.parameters[k]];
  const TuningOff tuning_off(context);  // shapes may differ in each pass
  prepare_node(context, *this, node);
  return true;
}

// Enlarges the node's storages where its shapes need it. True when one of them has moved.
bool Plan::grow_storage(Context& context, PlanNode& node) {
  bool moved = false;
  const auto hold = [&](int storage, size_t bytes) {
    moved = grow_storage(context, storage, bytes) || moved;
  };
  for (size_t j = 0; j < node.tops.size(); ++j) {
    PlanValue v = values[node.tops[j]];
    // Its largest output, before the actual one is known.
    if (node.shapes.dynamic && node.preparation.tops[j].count() > v.shape.count())
      v.shape = node.preparation.tops[j];
    for (int storage : {v.storage, v.diff_storage, v.recomputed_storage, v.seed_storage})
      hold(storage, v.bytes());
  }
  for (size_t j = 0; j < node.bottoms.size(); ++j)
    hold(node.storages.bottom_diffs[j], values[node.bottoms[j]].bytes());
  for (size_t k = 0; k < node.saved.size(); ++k) {
    if (k == node.storages.saved.size()) {
      node.storages.saved.push_back(static_cast<int>(storages.size()));
      storages.emplace_back();
    }
    const TensorSpec& spec = node.saved[k];
    hold(node.storages.saved[k],
         static_cast<size_t>(spec.shape.count()) * size_of(spec.dtype.value_or(options.dtype)));
  }
  for (int storage : {node.storages.forward_workspace, node.storages.backward_workspace})
    hold(storage, node.prepared.workspace);
  if (!side_storages.empty() && node.side_stream != Context::kHere)
    hold(side_storages[node.side_stream], node.prepared.workspace);
  return moved;
}

// The storage has no results of this pass yet: only tops of later steps grow.
bool Plan::grow_storage(Context& context, int storage, size_t bytes) {
  if (storage < 0 || bytes <= storages[storage].bytes) return false;
  Storage& s = storages[storage];
  s.bytes = bytes;
  s.own = std::make_shared<Buffer>(context, bytes);
  return s.persistent;
}

}  // namespace crema
