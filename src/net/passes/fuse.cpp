// Pass "fuse": replaces adjacent layers by one fused layer, following the table in
// fuse_patterns.cpp, if that is profitable. A fused node's type is the members' types with '+'
// between ("Sum" for an Eltwise sum); its message holds the parameters of all members, its
// parameter blobs are theirs in order.
#include <algorithm>

#include "net/passes/fuse_patterns.h"
#include "proto/layer.pb.h"

namespace crema {
namespace {

class Fuser {
 public:
  Fuser(Context& context, Plan& plan)
      : context_(context),
        plan_(plan),
        readers_(readers_of(plan)),
        dead_(plan.nodes.size(), false) {}

  void run() {
    for (size_t i = 0; i < plan_.nodes.size(); ++i) {
      if (!dead_[i]) fuse_from(static_cast<int>(i));
    }
    remove_nodes(plan_, dead_);
  }

 private:
  void fuse_from(int node) {
    const auto* given = plan_.options.patterns;
    for (const FusePattern& pattern : given ? *given : fuse_patterns()) {
      const std::vector<int> nodes = match(pattern, node);
      if (nodes.empty() || (pattern.fits && !pattern.fits({plan_, nodes}))) continue;
      if (fuse(nodes, pattern.type())) return;
    }
  }

  // The nodes of the pattern in the order of its type; none: it does not begin here.
  std::vector<int> match(const FusePattern& pattern, int first) const {
    std::vector<int> nodes;
    for (const std::string& word : split(pattern.path, '+')) {
      const int node = nodes.empty() ? first : sole_reader(plan_, readers_, nodes.back());
      if (!is(word, node) || (!nodes.empty() && !backward_agrees(nodes.back(), node))) return {};
      if (word == "Sum" && !pattern.branch.empty()) {
        const std::vector<int> branch = match_back(pattern.branch, node, nodes.back());
        if (branch.empty()) return {};
        nodes.insert(nodes.end(), branch.begin(), branch.end());
      }
      nodes.push_back(node);
    }
    return nodes;
  }

  // The nodes of the path that ends in the bottom of `sum` that `other` does not write.
  std::vector<int> match_back(const std::string& path, int sum, int other) const {
    const std::vector<std::string> words = split(path, '+');
    const std::vector<int>& added = plan_.nodes[sum].bottoms;
    int value = added[added[0] == plan_.nodes[other].tops[0] ? 1 : 0];
    std::vector<int> nodes;
    for (auto word = words.rbegin(); word != words.rend(); ++word) {
      const int reader = nodes.empty() ? sum : nodes.front();
      const int node = plan_.values[value].producer;
      if (!is(*word, node) || sole_reader(plan_, readers_, node) != reader ||
          !backward_agrees(node, reader))
        return {};
      nodes.insert(nodes.begin(), node);
      value = plan_.nodes[node].bottoms[0];
    }
    return nodes;
  }

  bool is(const std::string& word, int node) const {
    return node >= 0 && !dead_[node] && matches_word(word, plan_.nodes[node]);
  }

  bool backward_agrees(int a, int b) const {
    return plan_.nodes[a].backward == plan_.nodes[b].backward;
  }

  // One of the first `count` members makes this value.
  bool made_by(const std::vector<int>& members, size_t count, int value) const {
    return std::any_of(members.begin(), members.begin() + static_cast<int64_t>(count),
                       [&](int member) { return plan_.nodes[member].tops[0] == value; });
  }

  // False: not done, as it is not profitable.
  bool fuse(const std::vector<int>& members, const std::string& type) {
    PlanNode& first = plan_.nodes[members.front()];
    PlanNode fused;
    static_cast<Node&>(fused) = first;
    fused.folding = first.folding;
    for (size_t m = 1; m < members.size(); ++m) {
      const PlanNode& next = plan_.nodes[members[m]];
      LayerParameter more = next.message;
      more.clear_name();
      more.clear_type();
      more.clear_bottom();
      more.clear_top();
      more.clear_param();
      more.clear_include();
      more.clear_exclude();
      more.clear_propagate_down();
      more.clear_quantization_param();
      fused.message.MergeFrom(more);
      for (size_t j = 0; j < next.bottoms.size(); ++j) {
        if (made_by(members, m, next.bottoms[j])) continue;
        fused.bottoms.push_back(next.bottoms[j]);
        fused.propagate.push_back(next.propagate[j]);
      }
      fused.parameters.insert(fused.parameters.end(), next.parameters.begin(),
                              next.parameters.end());
      fused.members.insert(fused.members.end(), next.members.begin(), next.members.end());
    }
    fused.tops = plan_.nodes[members.back()].tops;
    fused.place = plan_.nodes[members.back()].place;
    fused.message.set_type(type);
    fused.message.mutable_top()->CopyFrom(plan_.nodes[members.back()].message.top());
    fused.layer = make_layer(fused.message, first.layer->training(), first.layer->folder());
    std::vector<Shape> bottoms;
    for (int value : fused.bottoms) bottoms.push_back(plan_.values[value].shape);
    fused.layer->share_rng_of(*plan_.nodes[members.back()].layer);
    fused.layer->setup(context_, bottoms);
    if (!fused.layer->is_profitable(context_, bottoms, plan_.precision_of(fused))) return false;
    for (int member : members) dead_[member] = true;
    // At the place of the last member: there all its bottoms exist.
    plan_.nodes[members.back()] = std::move(fused);
    dead_[members.back()] = false;
    return true;
  }

  Context& context_;
  Plan& plan_;
  Readers readers_;
  std::vector<bool> dead_;
};

}  // namespace

void fuse_layers(Context& context, Plan& plan) { Fuser(context, plan).run(); }

}  // namespace crema
