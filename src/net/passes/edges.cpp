// Pass "edges": what passes along the edges of the graph besides blobs and gradients
// (layers/edge.h). Part of fuse.
//
// Gradients through ReLUs. A maximum over outputs of a ReLU is positive exactly where the chosen
// value is. So a max pooling can pass its gradient through that ReLU without reading its bottom.
// Once all readers do so, also after a Concat, no backward reads the ReLU's output any more: its
// memory is free after the forward pass, and its writer saves one pass. A layer that reads its
// bottom in backward anyway, as the end of a classifier does, can do so too.
//
// Statistics. Batch normalization first reads a convolution's whole output only to add it up. A
// convolution whose kernel can do that while it writes is asked to. Kernels add in any order, so
// this is skipped if results must be reproducible.
#include <algorithm>

#include "net/plan/plan.h"

namespace crema {
namespace {

class ReluEdges {
 public:
  explicit ReluEdges(Plan& plan)
      : plan_(plan), from_relu_(plan.values.size(), 0.f), taken_(plan.values.size()) {}

  void run() {
    for (PlanNode& node : plan_.nodes) find_source(node);
    for (size_t id = 0; id < taken_.size(); ++id) {
      const PlanValue& value = plan_.values[id];
      taken_[id] = from_relu_[id] != 0 && !value.output && value.loss_weight == 0;
    }
    for (auto node = plan_.nodes.rbegin(); node != plan_.nodes.rend(); ++node) hand_on(*node);
    for (PlanNode& node : plan_.nodes) {
      Edge& edge = node.edges.bottom;
      // Going through a ReLU twice changes nothing, but a factor must not be taken twice.
      if (edge.relu_factor == 1 || writer_of_first(node).edges.top.relu) continue;
      edge.relu = false;
      edge.relu_factor = 1;
    }
  }

 private:
  PlanNode& writer_of_first(const PlanNode& node) const {
    return plan_.nodes[plan_.values[node.bottoms[0]].producer];
  }

  void find_source(PlanNode& node) {
    const float first = node.bottoms.empty() ? 0.f : from_relu_[node.bottoms[0]];
    const auto like_first = [&](int value) { return from_relu_[value] == first; };
    const bool passes_on = node.tops.size() == 1 && node.layer->traits().copies_elements() &&
                           std::all_of(node.bottoms.begin(), node.bottoms.end(), like_first);
    const Edge top = node.layer->top_edge();
    if (!node.tops.empty())
      from_relu_[node.tops[0]] = top.relu ? top.relu_factor : passes_on ? first : 0.f;
    if (first == 0) return;
    const Edge bottom = node.layer->bottom_edge(0);
    const bool with_factor = bottom.any_relu_factor && writer_of_first(node).layer->top_edge().relu;
    node.edges.bottom.relu = bottom.relu && (first == 1 || with_factor);
    if (node.edges.bottom.relu) node.edges.bottom.relu_factor = first;
  }

  // Values that already have all parts of their gradient taken through the ReLU.
  void hand_on(PlanNode& node) {
    for (size_t j = 0; j < node.bottoms.size(); ++j) {
      if (!node.backward || !node.propagate[j]) continue;
      const bool through = node.edges.bottom.relu
                               ? j == 0
                               : node.layer->traits().copies_elements() && taken_[node.tops[0]];
      if (!through) taken_[node.bottoms[j]] = false;
    }
    node.edges.top.relu = node.backward && node.layer->top_edge().relu && taken_[node.tops[0]];
  }

  Plan& plan_;
  // For values whose elements all come out of a ReLU: its factor; 0 for others.
  std::vector<float> from_relu_;
  std::vector<bool> taken_;
};

void ask_for_statistics(Plan& plan) {
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    PlanNode& reader = plan.nodes[i];
    reader.edges.statistics_makers.assign(reader.bottoms.size(), -1);
    for (size_t j = 0; j < reader.bottoms.size() && !reader.shapes.depends_on_dynamic; ++j) {
      const PlanValue& value = plan.values[reader.bottoms[j]];
      if (!reader.layer->bottom_edge(static_cast<int>(j)).statistics || value.producer < 0 ||
          value.top != 0)
        continue;
      PlanNode& maker = plan.nodes[value.producer];
      if (maker.edges.statistics_reader >= 0) continue;
      maker.edges.statistics_reader = static_cast<int>(i);
      maker.edges.top.statistics = true;
      reader.edges.statistics_makers[j] = value.producer;
    }
  }
}

}  // namespace

void choose_edges(Context& context, Plan& plan) {
  ReluEdges(plan).run();
  if (!context.repeatable) ask_for_statistics(plan);
}

}  // namespace crema
