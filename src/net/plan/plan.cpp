#include "net/plan/plan.h"

#include <set>

#include "net/graph/graph_builder.h"
#include "tensor/part.h"

namespace crema {

Plan::Plan(Context& context, const Graph& graph, const PlanOptions& wanted)
    : options(wanted), outputs(graph.outputs) {
  for (const Value& value : graph.values) {
    values.emplace_back();
    static_cast<Value&>(values.back()) = value;
  }
  for (const Node& node : graph.nodes) {
    nodes.emplace_back();
    static_cast<Node&>(nodes.back()) = node;
    if (!node.stale) continue;
    for (size_t j = 0; j < node.bottoms.size(); ++j) {
      PlanValue& value = values[node.bottoms[j]];
      value.cut = value.cut || (node.backward && node.propagate[j]);
    }
    nodes.back().backward = false;
  }
  if (options.fuse && !options.keep_blobs) {
    if (!options.backward) fold_layers(context, *this, graph.parameters);
    fuse_layers(context, *this);
  }
  choose_formats(*this);
  mark_dynamic_shapes();
  if (options.fuse && !options.keep_blobs) choose_edges(context, *this);
  if (options.cache_bytes > 0) choose_micro_batches(*this, options.cache_bytes);
  prepare_nodes(context, *this, graph.parameters);
  if (options.recompute != Recompute::off) choose_recomputed(*this);
  plan_memory(*this);
  count_host_nodes();
}

void Plan::count_host_nodes() {
  host_nodes = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].layer->traits().works_on_host) host_nodes = i + 1;
  }
}

Precision Plan::precision_of(const Node& node) const {
  if (!node.message.has_precision()) return options.precision;
  Precision wanted{};
  at_layer(node.place, [&] { wanted = precision_named(node.message.precision()); });
  // It may only be wider than the net's: 16-bit copies of parameters exist in the net's type or not
  // at all.
  return is_half(wanted) || options.precision == Precision::fp32 ? options.precision : wanted;
}

Readers readers_of(const Plan& plan) {
  Readers readers(plan.values.size());
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    for (size_t j = 0; j < plan.nodes[i].bottoms.size(); ++j) {
      readers[plan.nodes[i].bottoms[j]].emplace_back(static_cast<int>(i), static_cast<int>(j));
    }
  }
  return readers;
}

int sole_reader(const Plan& plan, const Readers& readers, int node) {
  const PlanNode& n = plan.nodes[node];
  if (n.tops.size() != 1) return -1;
  const PlanValue& value = plan.values[n.tops[0]];
  const auto& of_top = readers[n.tops[0]];
  if (of_top.size() != 1 || value.output || value.keep || value.loss_weight != 0) return -1;
  return of_top[0].first;
}

void remove_nodes(Plan& plan, const std::vector<bool>& removed) {
  if (std::find(removed.begin(), removed.end(), true) == removed.end()) return;
  std::vector<PlanNode> left;
  left.reserve(plan.nodes.size());  // moving a node's message is slow
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    if (!removed[i]) left.push_back(std::move(plan.nodes[i]));
  }
  plan.nodes = std::move(left);
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    for (const int value : plan.nodes[i].tops) plan.values[value].producer = static_cast<int>(i);
  }
}

Reads reads_of(const Plan& plan, const Readers& readers, int id) {
  const PlanValue& value = plan.values[id];
  const PlanNode& producer = plan.nodes[value.producer];
  Reads reads;
  const auto backward = [&](int step) {
    reads.last_backward = std::max(reads.last_backward, step);
    reads.first_backward = reads.first_backward < 0 ? step : std::min(reads.first_backward, step);
  };
  reads.last_forward = plan.forward_step(value.producer);
  if (producer.backward && producer.reads.top) backward(plan.backward_step(value.producer));
  for (const auto& [node, bottom] : readers[id]) {
    reads.last_forward = std::max(reads.last_forward, plan.forward_step(node));
    if (plan.nodes[node].backward && plan.nodes[node].reads.bottom_at(bottom))
      backward(plan.backward_step(node));
  }
  // Each micro-batch reads and writes a part of it.
  const MicroBatches& micro = plan.micro_batches;
  if (!value.in_micro_batch && reads.last_forward >= plan.forward_step(micro.first) &&
      reads.last_forward <= plan.forward_step(micro.last))
    reads.last_forward = plan.forward_step(micro.last);
  if (value.output || value.keep || value.loss_weight != 0)
    reads.last_forward = plan.step_count() - 1;
  return reads;
}

Tensor Plan::tensor(int storage, const Shape& shape, DType dtype, const Format& format) const {
  if (storage < 0) return {};
  const Storage& s = storages[storage];
  if (s.own) return Tensor(s.own, 0, shape, dtype, format);
  return Tensor(s.persistent ? persistent_ : arena_, s.offset, shape, dtype, format);
}

Tensor Plan::tensor(int storage, const PlanValue& value) const {
  return tensor(storage, value.shape, value.dtype, value.format());
}

Tensor Plan::value(int id) const { return tensor(values[id].storage, values[id]); }
Tensor Plan::diff(int id) const { return tensor(values[id].diff_storage, values[id]); }
Tensor Plan::seed(int id) const { return tensor(values[id].seed_storage, values[id]); }

Shape Plan::pairs_of_channels(const PlanNode& node) const {
  return {2, values[node.tops[0]].shape[1]};
}

Shape Plan::shape_in(int node, int value) const {
  Shape shape = values[value].shape;
  if (micro_batches.has(node)) shape[0] = micro_batches.samples;
  return shape;
}

LossParts Plan::loss_parts(const PlanNode& node) const {
  std::vector<Shape> bottoms;
  for (const int id : node.bottoms) bottoms.push_back(values[id].shape);
  return node.layer->loss_parts(bottoms);
}

LossShares Plan::loss_shares(const PlanValue& value) const {
  const LossParts parts = loss_parts(nodes[value.producer]);
  const auto share = [&](PartsRule of) {
    const bool is_sum =
        of == PartsRule::sum || (of == PartsRule::counted && options.shares_batches);
    return is_sum ? options.sum_share : options.loss_share;
  };
  return {share(parts.loss), share(parts.gradient),
          parts.gradient == PartsRule::counted && options.shares_batches};
}

Tensor Plan::loss_count(const PlanValue& value) const {
  const PlanNode& node = nodes[value.producer];
  return node.layer->loss_count(node.arguments.forward.saved);
}

void Plan::fill_seeds(Context& context) {
  for (const PlanValue& value : values) {
    const bool alone = value.diff_storage >= 0 && value.seed_storage < 0 &&
                       storages[value.diff_storage].persistent;
    const int storage = value.seed_storage >= 0 ? value.seed_storage
                        : alone                 ? value.diff_storage
                                                : -1;
    if (storage < 0) continue;
    const std::vector<double> weights(value.shape.count(),
                                      value.loss_weight * loss_shares(value).gradient);
    from_doubles(context, weights.data(), tensor(storage, value));
  }
}

void Plan::bind(PlanNode& node, const std::vector<Parameter>& parameters) {
  const auto workspace = [&](int storage) {
    if (storage < 0) return Tensor();
    const Shape shape{static_cast<int64_t>(storages[storage].bytes)};
    return tensor(storage, shape, DType::u8, {});
  };
  Forward& f = node.arguments.forward;
  Backward& b = node.arguments.backward;
  const uint64_t pass = f.pass;
  const uint64_t* const live_pass = f.live_pass;
  const BatchShare share = f.share;
  f = {};
  b = {};
  f.pass = b.pass = pass;
  f.live_pass = b.live_pass = live_pass;
  f.share = b.share = share;
  node.arguments.micro_batches.clear();
  for (int id : node.bottoms) f.bottom.push_back(value(id));
  for (size_t j = 0; j < node.tops.size(); ++j) {
    const PlanValue& v = values[node.tops[j]];
    const Shape& shape = node.shapes.dynamic ? node.preparation.tops[j] : v.shape;
    f.top.push_back(tensor(v.storage, shape, v.dtype, v.format()));
  }
  const std::vector<ParameterSpec>& specs = node.layer->parameters();
  if (node.folding >= 0) {
    b.parameter_diff.resize(node.parameters.size());
    f.parameters = {folded[node.folding]->weights, folded[node.folding]->bias};
  }
  for (size_t k = 0; k < node.parameters.size() && node.folding < 0; ++k) {
    const Parameter& parameter = parameters[node.parameters[k]];
    const bool same = k >= specs.size() || specs[k].shape == parameter.shape;
    const std::vector<bool>& halves = node.prepared.half_parameters;
    const Tensor& data = k < halves.size() && halves[k] ? parameter.half : parameter.data;
    f.parameters.push_back(same ? data : data.reshaped(specs[k].shape));
    const bool wanted = node.backward && node.preparation.parameter_needs_diff[k];
    b.parameter_diff.push_back(!wanted ? Tensor()
                               : same  ? parameter.diff
                                       : parameter.diff.reshaped(specs[k].shape));
  }
  for (size_t k = 0; k < node.saved.size(); ++k) {
    f.saved.push_back(tensor(node.storages.saved[k], node.saved[k].shape,
                             node.saved[k].dtype.value_or(options.dtype), {}));
  }
  const auto pairs = [&](const PlanNode& maker, int storage, DType dtype) {
    return storage < 0 ? Tensor() : tensor(storage, pairs_of_channels(maker), dtype, {});
  };
  const auto affine_of = [&](const PlanNode& maker) {
    return pairs(maker, maker.storages.affine, DType::f16);
  };
  const auto statistics_of = [&](const PlanNode& maker) {
    return pairs(maker, maker.storages.statistics, DType::f32);
  };
  const auto rounded = [&](const PlanNode& maker) {
    if (maker.storages.rounded < 0) return Tensor();
    const PlanValue& v = values[maker.tops[0]];
    return tensor(maker.storages.rounded, v.shape, DType::u8, v.format());
  };
  f.top_edge = {statistics_of(node), affine_of(node), rounded(node), {}};
  f.bottom_edges.resize(node.bottoms.size());
  for (size_t j = 0; j < node.edges.statistics_makers.size(); ++j) {
    const int maker = node.edges.statistics_makers[j];
    if (maker >= 0) f.bottom_edges[j].statistics = statistics_of(nodes[maker]);
  }
  const bool folded = !node.bottoms.empty() && values[node.bottoms[0]].folded();
  if (folded) {
    const PlanNode& maker = nodes[values[node.bottoms[0]].producer];
    f.bottom[0] = value(maker.bottoms[0]);
    f.bottom_edges[0].affine = affine_of(maker);
  }
  if (node.prepared.bottom_edge.rounded)
    f.bottom_edges[0].rounded = rounded(nodes[values[node.bottoms[0]].producer]);
  f.workspace = workspace(node.storages.forward_workspace);
  f.state = b.state = node.prepared.state.get();
  b.parameters = f.parameters;
  b.saved = f.saved;
  b.workspace = workspace(node.storages.backward_workspace);
  b.side_stream = node.side_stream;
  const bool here = side_storages.empty() || node.side_stream == Context::kHere;
  b.side_workspace = here ? b.workspace : workspace(side_storages[node.side_stream]);
  b.accumulate.assign(node.parameters.size(), 0);
  b.begun.assign(node.parameters.size(), 0);
  const auto in_backward = [&](int id) {
    const PlanValue& v = values[id];
    return tensor(v.recomputed_storage >= 0 ? v.recomputed_storage : v.storage, v);
  };
  for (size_t j = 0; j < node.bottoms.size(); ++j) {
    const PlanValue& v = values[node.bottoms[j]];
    b.bottom.push_back(node.reads.bottom_at(j) ? in_backward(node.bottoms[j]) : Tensor());
    b.bottom_diff.push_back(tensor(node.storages.bottom_diffs[j], v));
  }
  for (size_t j = 0; j < node.tops.size(); ++j) {
    b.top.push_back(node.reads.top ? in_backward(node.tops[j]) : Tensor());
    b.top_diff.push_back(diff(node.tops[j]));
  }
  if (folded && !values[node.bottoms[0]].recomputed()) {
    b.bottom[0] = f.bottom[0];
    b.bottom_edge.affine = f.bottom_edges[0].affine;
  }
  for (int storage : node.storages.gradient_parts)
    b.top_edge.gradient_parts.push_back(tensor(storage, values[node.tops[0]]));
  for (DiffSum& sum : node.diff_sums) {
    sum.parts.clear();
    for (int storage : sum.storages) sum.parts.push_back(tensor(storage, values[sum.value]));
    sum.sum = diff(sum.value);
  }
}

void Plan::bind_micro_batches(int index) {
  PlanNode& node = nodes[index];
  const Forward& whole = node.arguments.forward;
  for (int64_t k = 0; k < micro_batches.parts; ++k) {
    Forward one = whole;
    const auto take_one = [&](int id, Tensor* tensor) {
      if (values[id].in_micro_batch || !*tensor) return;
      const Shape shape = shape_in(index, id);
      *tensor = part(*tensor, shape, k * values[id].format().elements(shape));
    };
    const auto take = [&](const std::vector<int>& ids, std::vector<Tensor>* tensors) {
      for (size_t j = 0; j < ids.size(); ++j) take_one(ids[j], &(*tensors)[j]);
    };
    take(node.bottoms, &one.bottom);
    take(node.tops, &one.top);
    if (!node.bottoms.empty()) take_one(node.bottoms[0], &one.bottom_edges[0].rounded);
    if (!node.tops.empty()) take_one(node.tops[0], &one.top_edge.rounded);
    node.arguments.micro_batches.push_back(std::move(one));
  }
}

void Plan::bind_recomputed(PlanNode& node) {
  for (Recomputation& recomputed : node.recomputations) {
    const PlanNode& producer = nodes[recomputed.node];
    recomputed.arguments = producer.arguments.forward;
    recomputed.arguments.workspace = node.arguments.backward.workspace;
    for (size_t k = 0; k < producer.tops.size(); ++k) {
      const PlanValue& v = values[producer.tops[k]];
      recomputed.arguments.top[k] = tensor(v.recomputed_storage, v);
    }
  }
}

void Plan::bind(Context& context, const std::shared_ptr<Buffer>& arena,
                const std::vector<Parameter>& parameters) {
  arena_ = arena;
  bound_ = arena.get();
  ++generation;
  if (!persistent_) {
    persistent_ = std::make_shared<Buffer>(context, persistent_bytes);
    fill_seeds(context);
  }
  FoldedStore own;  // if the caller has taken none
  take_folded(context, own);
  for (PlanNode& node : nodes) bind(node, parameters);
  for (PlanNode& node : nodes) bind_recomputed(node);
  for (int i = micro_batches.first; i <= micro_batches.last; ++i) bind_micro_batches(i);
  cleared.clear();
  for (const PlanNode& node : nodes) {
    for (size_t k = 0; k < node.parameters.size() && node.prepared.adds_gradients; ++k) {
      if (node.arguments.backward.parameter_diff[k]) cleared.insert(node.parameters[k]);
    }
  }
  // Backward runs in reverse: a parameter's last holder writes its diff, the others add to it.
  std::set<int> begun;
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    node->arguments.accumulate.assign(node->parameters.size(), false);
    for (size_t k = 0; k < node->parameters.size(); ++k) {
      const int parameter = node->parameters[k];
      if (!node->arguments.backward.parameter_diff[k]) continue;
      const bool earlier = !begun.insert(parameter).second;
      node->arguments.backward.begun[k] = earlier;
      node->arguments.accumulate[k] = earlier || cleared.count(parameter) > 0;
    }
  }
}

}  // namespace crema
