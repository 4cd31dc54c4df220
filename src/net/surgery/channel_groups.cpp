#include "net/surgery/channel_groups.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "layers/layer_facts.h"
#include "proto/params/convolution.pb.h"
#include "proto/params/dense.pb.h"
#include "proto/params/pointwise.pb.h"
#include "proto/params/shape.pb.h"

namespace crema {
namespace {

// Positions along axis 1 of a value that belong to one set of channels.
struct Segment {
  int set = 0;
  int64_t channels = 0;
  int64_t width = 1;  // positions of each channel: more than 1 where an image has become a row
};

class GroupFinder {
 public:
  explicit GroupFinder(const Graph& graph) : graph_(graph), segments_(graph.values.size()) {
    for (const Node& node : graph.nodes)
      for (const int parameter : node.parameters) ++uses_[parameter];
  }

  std::vector<ChannelGroup> run() {
    for (const Node& node : graph_.nodes) visit(node);
    for (const int value : graph_.outputs) fix(value);
    for (size_t i = 0; i < graph_.values.size(); ++i)
      if (graph_.values[i].loss_weight != 0) fix(static_cast<int>(i));
    std::map<int, ChannelGroup> groups;
    for (size_t set = 0; set < sets_.size(); ++set) {
      const int root = root_of(static_cast<int>(set));
      ChannelGroup& group = groups[root];
      Set& one = sets_[set];
      group.channels = one.group.channels;
      const auto append = [](auto& to, const auto& from) {
        to.insert(to.end(), from.begin(), from.end());
      };
      append(group.layers, one.group.layers);
      append(group.counts, one.group.counts);
      append(group.parts, one.group.parts);
      sets_[root].is_fixed |= one.is_fixed;
    }
    std::vector<ChannelGroup> found;
    for (auto& [root, group] : groups)
      if (!sets_[root].is_fixed && !group.layers.empty()) found.push_back(std::move(group));
    return found;
  }

 private:
  struct Set {
    int parent;
    bool is_fixed = false;
    ChannelGroup group;
  };

  const Shape& shape_of(int value) const { return graph_.values[value].shape; }
  int root_of(int set) const {
    while (sets_[set].parent != set) set = sets_[set].parent;
    return set;
  }
  Segment make_set(int64_t channels, bool is_fixed = false) {
    const int set = static_cast<int>(sets_.size());
    sets_.push_back({set, is_fixed, {channels, {}, {}, {}}});
    return {set, channels, 1};
  }
  // No channel of the value may be removed.
  void fix(int value) {
    for (const Segment& segment : segments_[value]) sets_[segment.set].is_fixed = true;
  }
  bool is_shared(const Node& node) const {
    return std::any_of(node.parameters.begin(), node.parameters.end(),
                       [&](int parameter) { return uses_.at(parameter) > 1; });
  }

  // For layers about which nothing is known.
  void fix_all(const Node& node) {
    for (const int value : node.bottoms) fix(value);
    for (const int value : node.tops) {
      const Shape& shape = shape_of(value);
      segments_[value] = {make_set(shape.axes() > 1 ? shape[1] : 1, true)};
    }
  }

  void visit(const Node& node) {
    const LayerFacts facts = facts_of(node.message.type());
    const bool single = node.bottoms.size() == 1 && node.tops.size() == 1;
    if (is_shared(node) || node.bottoms.empty()) return fix_all(node);
    if (facts.kind == LayerKind::convolution && single && convolves(node)) return;
    if (facts.kind == LayerKind::dense && single && multiplies(node)) return;
    if (facts.kind == LayerKind::join && joins(node)) return;
    if (node.message.type() == "Split") return copies(node);
    if (node.message.type() == "Flatten" && single && flattens(node)) return;
    if (facts.keeps_zero && facts.keeps_channels && single && keeps(node)) return;
    fix_all(node);
  }

  void add_parts(const std::vector<Segment>& segments, const ChannelPart& first) {
    ChannelPart part = first;
    for (const Segment& segment : segments) {
      part.width = segment.width * first.width;
      sets_[segment.set].group.parts.push_back(part);
      part.first += segment.channels * part.width;
    }
  }

  // The rows of a layer with weights, and its bias.
  void add_rows(const Node& node, const std::vector<Segment>& segments) {
    for (const Segment& segment : segments)
      sets_[segment.set].group.layers.push_back(node.message.name());
    for (const int parameter : node.parameters) add_parts(segments, {parameter, 0});
  }

  bool convolves(const Node& node) {
    const ConvolutionParameter& p = node.message.convolution_param();
    if (!facts_of(node.message.type()).quantizes || p.axis() != 1 || node.parameters.empty())
      return false;
    const std::vector<Segment>& from = segments_[node.bottoms[0]];
    const Shape &w = graph_.parameters[node.parameters[0]].shape, x = shape_of(node.bottoms[0]);
    const bool wide =
        std::any_of(from.begin(), from.end(), [](const auto& s) { return s.width > 1; });
    if (wide || w.axes() < 2) return false;
    if (w[1] == x[1]) {
      add_parts(from, {node.parameters[0], 1});
      segments_[node.tops[0]] = {make_set(w[0])};
      add_rows(node, segments_[node.tops[0]]);
      return true;
    }
    if (w[1] != 1 || w[0] != x[1]) return false;
    for (const Segment& segment : from)
      sets_[segment.set].group.counts.push_back(node.message.name());
    segments_[node.tops[0]] = from;
    add_rows(node, from);
    return true;
  }

  bool multiplies(const Node& node) {
    const InnerProductParameter& p = node.message.inner_product_param();
    if (p.axis() != 1 || p.transpose() || p.normalize() || node.parameters.empty()) return false;
    const Shape& x = shape_of(node.bottoms[0]);
    if (x.axes() < 2) return false;
    add_parts(segments_[node.bottoms[0]], {node.parameters[0], 1, 0, x.count(2)});
    segments_[node.tops[0]] = {make_set(graph_.parameters[node.parameters[0]].shape[0])};
    add_rows(node, segments_[node.tops[0]]);
    return true;
  }

  bool joins(const Node& node) {
    if (node.tops.size() != 1) return false;
    std::vector<Segment>& to = segments_[node.tops[0]];
    if (node.message.type() == "Concat") {
      const ConcatParameter& p = node.message.concat_param();
      if (p.axis() != 1 || (p.has_concat_dim() && p.concat_dim() != 1)) return false;
      for (const int value : node.bottoms)
        to.insert(to.end(), segments_[value].begin(), segments_[value].end());
      return true;
    }
    if (node.message.type() != "Eltwise") return false;
    const std::vector<Segment> first = segments_[node.bottoms[0]];
    for (const int value : node.bottoms) {
      const std::vector<Segment>& other = segments_[value];
      const bool same = std::equal(first.begin(), first.end(), other.begin(), other.end(),
                                   [](const Segment& a, const Segment& b) {
                                     return a.channels == b.channels && a.width == b.width;
                                   });
      if (!same || shape_of(value) != shape_of(node.bottoms[0])) return false;
    }
    for (const int value : node.bottoms)
      for (size_t i = 0; i < first.size(); ++i)
        sets_[root_of(segments_[value][i].set)].parent = root_of(first[i].set);
    to = first;
    return true;
  }

  void copies(const Node& node) {
    for (const int value : node.tops) segments_[value] = segments_[node.bottoms[0]];
  }

  bool flattens(const Node& node) {
    const FlattenParameter& p = node.message.flatten_param();
    if (p.axis() != 1 || p.end_axis() != -1) return false;
    std::vector<Segment> segments = segments_[node.bottoms[0]];
    for (Segment& segment : segments) segment.width *= shape_of(node.bottoms[0]).count(2);
    segments_[node.tops[0]] = std::move(segments);
    return true;
  }

  // Parameters have a value for each channel, or few values that concern none.
  bool keeps(const Node& node) {
    const Shape& x = shape_of(node.bottoms[0]);
    if (x.axes() < 2 || node.message.scale_param().axis() != 1 ||
        node.message.bias_param().axis() != 1)
      return false;
    const bool by_channel = facts_of(node.message.type()).kind != LayerKind::math;
    for (size_t i = 0; by_channel && i < node.parameters.size(); ++i) {
      const int parameter = node.parameters[i];
      const Shape& shape = graph_.parameters[parameter].shape;
      if (shape.count() == 1 && x[1] > 1) continue;
      if (shape.axes() != 1 || shape[0] != x[1]) return false;
      add_parts(segments_[node.bottoms[0]], {parameter, 0});
    }
    segments_[node.tops[0]] = segments_[node.bottoms[0]];
    return true;
  }

  const Graph& graph_;
  std::vector<std::vector<Segment>> segments_;  // of each value, along axis 1
  std::vector<Set> sets_;
  std::map<int, int> uses_;  // of parameters
};

}  // namespace

std::vector<ChannelGroup> channel_groups(const Graph& graph) { return GroupFinder(graph).run(); }

}  // namespace crema
