// Pass "prepare": every node creates its kernels, now that shapes, orders and gradients are known,
// and chooses the formats of its parameters. The first node with a parameter decides; a net that
// shares parameters accepts their formats. Also decides which nodes' backward runs.
#include <algorithm>

#include "net/graph/graph_builder.h"
#include "net/plan/plan.h"

namespace crema {
namespace {

// A node's backward runs when the plan trains, the net needs it, some top has a gradient and there
// is a gradient to compute.
void decide_backward(Plan& plan) {
  std::vector<bool> has_diff(plan.values.size(), false);
  for (auto node = plan.nodes.rbegin(); node != plan.nodes.rend(); ++node) {
    const std::vector<bool>& parameters = node->preparation.parameter_needs_diff;
    const bool useful = std::count(node->propagate.begin(), node->propagate.end(), true) > 0 ||
                        std::count(parameters.begin(), parameters.end(), true) > 0;
    bool any = false;
    for (int top : node->tops) {
      const PlanValue& value = plan.values[top];
      any = any || has_diff[top] || value.cut || value.loss_weight != 0 ||
            (plan.options.seed_outputs && value.output);
    }
    node->backward = node->backward && plan.options.backward && any && useful;
    for (size_t j = 0; node->backward && j < node->bottoms.size(); ++j) {
      if (node->propagate[j]) has_diff[node->bottoms[j]] = true;
    }
  }
}

// A value that its producer can give its only reader as scale and shift instead of writing it.
bool offers_affine(const Plan& plan, const Readers& readers, int id) {
  const PlanValue& value = plan.values[id];
  return value.producer >= 0 && plan.nodes[value.producer].layer->top_edge().affine &&
         readers[id].size() == 1 && !value.output && !value.keep && value.loss_weight == 0;
}

void take_formats(const Plan& plan, const PlanNode& node, Folding* folding) {
  const Prepared& prepared = node.prepared;
  PlanParameter* const both[] = {&folding->weights, &folding->bias};
  for (size_t k = 0; k < 2; ++k) {
    if (k < prepared.parameter_formats.size()) both[k]->format = prepared.parameter_formats[k];
    const bool half = k < prepared.half_parameters.size() && prepared.half_parameters[k];
    both[k]->dtype =
        half ? storage_of(plan.precision_of(node), plan.options.dtype) : plan.options.dtype;
  }
  folding->weights.packed_form = prepared.packed.form;
  folding->weights.packed_bytes = prepared.packed.bytes;
}

// Whether the node may read a copy of its weights. Not where its kernels are made again for other
// shapes, which might want another form. On a GPU only kernels of rounded weights have forms of their own.
bool may_pack(const Context& context, const Plan& plan, const PlanNode& node,
              const std::vector<Parameter>& parameters) {
  if ((context.device() != Device::cpu && !node.layer->message().has_quantization_param()) ||
      !plan.options.pack || !plan.options.fuse || plan.options.keep_blobs ||
      plan.options.row_major || plan.options.backward || node.shapes.depends_on_dynamic)
    return false;
  if (node.folding >= 0) return true;
  const std::vector<ParameterSpec>& specs = node.layer->parameters();
  bool same = node.parameters.size() == specs.size() && specs.size() <= 2;
  for (size_t k = 0; same && k < specs.size(); ++k)
    same = specs[k].shape == parameters[node.parameters[k]].shape;
  return same;
}

// The integers that a node rounds its bottom 0 to, if its kernel may take them in its place: in memory without
// padding, for images.
std::optional<QuantizedValues> takes_rounded(const Context& context, const Plan& plan,
                                             const PlanNode& node,
                                             const std::vector<Parameter>& parameters) {
  if (node.stale || node.bottoms.empty() || node.tops.size() != 1) return std::nullopt;
  const PlanValue& value = plan.values[node.bottoms[0]];
  if (value.order != Order::channels_last || value.channels != 0 || value.producer < 0 ||
      value.top != 0 || !may_pack(context, plan, node, parameters))
    return std::nullopt;
  return node.layer->bottom_edge(0).rounded;
}

// What the node's kernel is asked to write for the readers of its top 0. Those who round it differently read the
// blob itself.
void ask_for_rounded(const Context& context, const Plan& plan, const Readers& readers,
                     const PlanNode& node, const std::vector<Parameter>& parameters, Edge* edge) {
  if (node.tops.size() != 1 || !may_pack(context, plan, node, parameters)) return;
  const PlanValue& value = plan.values[node.tops[0]];
  edge->only_rounded = !value.output && !value.keep && value.loss_weight == 0;
  for (const auto& [reader, bottom] : readers[node.tops[0]]) {
    std::optional<QuantizedValues> rounded;
    if (bottom == 0) rounded = takes_rounded(context, plan, plan.nodes[reader], parameters);
    if (rounded && !edge->rounded) edge->rounded = rounded;
    edge->only_rounded = edge->only_rounded && rounded && rounded == edge->rounded;
  }
  if (!edge->rounded) edge->only_rounded = false;
}

// Whether the node has chosen to read a copy of its weights, in a form of its kernel or in another
// format than they have.
bool reads_copy(const PlanNode& node) {
  if (node.prepared.packed.bytes > 0) return true;
  const Preparation& p = node.preparation;
  return p.packs_weights && !p.parameter_formats.empty() && p.parameter_formats[0] &&
         !node.prepared.parameter_formats.empty() &&
         !same_layout(*p.parameter_formats[0], node.prepared.parameter_formats[0],
                      node.layer->parameters()[0].shape);
}

// For a node that reads a copy of its weights, and is not folded.
void add_folding(Plan& plan, PlanNode& node) {
  Folding folding;
  folding.parameters = node.parameters;
  folding.weights.shape = node.layer->parameters()[0].shape;
  folding.bias.shape = {0};
  if (node.parameters.size() > 1) folding.bias.shape = node.layer->parameters()[1].shape;
  take_formats(plan, node, &folding);
  node.folding = static_cast<int>(plan.foldings.size());
  plan.foldings.push_back(std::move(folding));
}

}  // namespace

void prepare_node(Context& context, Plan& plan, PlanNode& node) {
  context.chosen.clear();
  node.prepared = node.layer->prepare(context, node.preparation);
  node.chosen = std::move(context.chosen);
  const LayerTraits traits = node.layer->traits();
  node.reads = node.prepared.reads.value_or(traits.reads);
  node.is_view = traits.is_view;
  node.saved = node.layer->infer(node.preparation.bottoms).saved;
  node.saved.insert(node.saved.end(), node.prepared.saved.begin(), node.prepared.saved.end());
  plan.workspace_bytes = std::max(plan.workspace_bytes, node.prepared.workspace);
  if (!node.shapes.depends_on_dynamic) return;
  at_layer(node.place, [&] {
    require(
        !traits.asks_ranks,
        "sync_bn needs a batch on every rank, but the shapes here depend on the data, and a rank "
        "may have nothing: leave sync_bn out");
  });
  // Kernels for other shapes might choose something else when the memory is already planned.
  node.reads = {};
  node.prepared.top_edge.gradient_parts = 1;
}

void prepare_nodes(Context& context, Plan& plan, const std::vector<Parameter>& parameters) {
  plan.parameter_formats.assign(parameters.size(), std::nullopt);
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].data) {
      plan.parameter_formats[i] = parameters[i].data.format();
    } else if (plan.options.row_major || plan.options.row_major_parameters) {
      plan.parameter_formats[i] = Format::row_major();
    }
  }
  const Readers readers = readers_of(plan);
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    PlanNode& node = plan.nodes[i];
    if (node.stale) continue;
    const auto shape = [&](int id) { return plan.shape_in(static_cast<int>(i), id); };
    Preparation& p = node.preparation;
    p = {};
    p.backward = plan.options.backward && node.backward;
    p.dtype = plan.options.dtype;
    p.precision = plan.precision_of(node);
    p.bottom_edge = node.edges.bottom;
    p.top_edge = node.edges.top;
    p.bottom_edge.affine = p.top_edge.statistics && plan.options.recompute != Recompute::off &&
                           !node.bottoms.empty() && offers_affine(plan, readers, node.bottoms[0]);
    ask_for_rounded(context, plan, readers, node, parameters, &p.top_edge);
    if (const auto rounded = takes_rounded(context, plan, node, parameters);
        rounded &&
        plan.nodes[plan.values[node.bottoms[0]].producer].prepared.top_edge.rounded == rounded)
      p.bottom_edge.rounded = rounded;
    p.storage = node.bottoms.empty() ? p.dtype : plan.values[node.bottoms[0]].dtype;
    for (size_t j = 0; j < node.bottoms.size(); ++j) {
      const PlanValue& value = plan.values[node.bottoms[j]];
      p.bottoms.push_back(shape(node.bottoms[j]));
      p.bottom_orders.push_back(value.order);
      p.bottom_channels.push_back(value.channels);
      p.bottom_needs_diff.push_back(p.backward && node.propagate[j]);
    }
    for (int id : node.tops) {
      p.tops.push_back(shape(id));
      p.top_orders.push_back(plan.values[id].order);
    }
    p.packs_weights = may_pack(context, plan, node, parameters);
    p.rounds = plan.options.rounds;
    if (node.folding >= 0) {
      p.parameter_needs_diff.assign(2, false);
      p.parameter_formats.resize(2);
      at_layer(node.place, [&] { prepare_node(context, plan, node); });
      take_formats(plan, node, &plan.foldings[node.folding]);
      continue;
    }
    const std::vector<ParameterSpec>& specs = node.layer->parameters();
    for (size_t k = 0; k < node.parameters.size(); ++k) {
      const Parameter& parameter = parameters[node.parameters[k]];
      p.parameter_needs_diff.push_back(
          p.backward && parameter.learned &&
          (parameter.lr_mult != 0 || plan.options.all_parameter_diffs));
      // Another shape of the same count (share_mode: PERMISSIVE) has a meaning only in row-major
      // order.
      const bool same_shape = k >= specs.size() || specs[k].shape == parameter.shape;
      if (!same_shape && !plan.parameter_formats[node.parameters[k]]) {
        plan.parameter_formats[node.parameters[k]] = Format::row_major();
      }
      p.parameter_formats.push_back(plan.parameter_formats[node.parameters[k]]);
    }
    at_layer(node.place, [&] { prepare_node(context, plan, node); });
    for (size_t k = 0; k < node.parameters.size(); ++k) {
      std::optional<Format>& format = plan.parameter_formats[node.parameters[k]];
      if (format) continue;
      format = k < node.prepared.parameter_formats.size() ? node.prepared.parameter_formats[k]
                                                          : Format::row_major();
    }
    if (reads_copy(node)) add_folding(plan, node);
  }
  for (std::optional<Format>& format : plan.parameter_formats) {
    if (!format) format = Format::row_major();  // of layers that are folded into others
  }
  decide_backward(plan);
}

}  // namespace crema
