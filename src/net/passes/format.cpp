// Pass "format": chooses the order and the real type of every value. Layers that run faster
// channels-last get it, layers that take any order follow their first bottom, the others get
// row-major (NCHW). 16-bit types are chosen likewise when the net computes in them. Reorder nodes
// are inserted where either changes.
#include <algorithm>
#include <map>
#include <tuple>

#include "net/plan/plan.h"

namespace crema {
namespace {

class Formatter {
 public:
  explicit Formatter(Plan& plan) : plan_(plan) {}

  void run() {
    for (PlanNode& node : plan_.nodes) visit(std::move(node));
    plan_.nodes = std::move(nodes_);
    if (!plan_.options.keep_blobs) spare_copies();
    for (size_t i = 0; i < plan_.nodes.size(); ++i) {
      for (int value : plan_.nodes[i].tops) plan_.values[value].producer = static_cast<int>(i);
    }
  }

 private:
  // A source whose only reader is the conversion to another format produces that format itself.
  void spare_copies() {
    const auto readers = readers_of(plan_);
    std::vector<int> replaced(plan_.values.size(), -1);
    for (const PlanNode& node : plan_.nodes) {
      if (!node.layer->traits().makes_any_format || readers[node.tops[0]].size() != 1) continue;
      PlanValue& made = plan_.values[node.tops[0]];
      const PlanNode& reader = plan_.nodes[readers[node.tops[0]][0].first];
      if (reader.message.type() != "Reorder" || reader.propagate[0] || made.output ||
          made.loss_weight != 0)
        continue;
      const PlanValue& copy = plan_.values[reader.tops[0]];
      made.order = copy.order;
      made.dtype = copy.dtype;
      made.channels = copy.channels;
      replaced[reader.tops[0]] = node.tops[0];
    }
    const auto spared = [&](const PlanNode& node) {
      return !node.tops.empty() && replaced[node.tops[0]] >= 0;
    };
    plan_.nodes.erase(std::remove_if(plan_.nodes.begin(), plan_.nodes.end(), spared),
                      plan_.nodes.end());
    for (PlanNode& node : plan_.nodes) {
      for (int& value : node.bottoms) {
        if (replaced[value] >= 0) value = replaced[value];
      }
    }
  }

  Order order_for(const PlanNode& node) const {
    switch (node.layer->traits().order_rule) {
      case OrderRule::row_major:
        return Order::row_major;
      case OrderRule::prefers_channels_last:
        return plan_.options.format ? Order::channels_last : Order::row_major;
      case OrderRule::any_in_32_bits:
        if (plan_.options.format && dtype_for(node) != plan_.options.dtype)
          return Order::channels_last;
        break;
      case OrderRule::any:
        break;
    }
    for (int value : node.bottoms) {
      if (plan_.values[value].shape.axes() >= 3) return plan_.values[value].order;
    }
    return Order::row_major;
  }

  DType dtype_for(const PlanNode& node) const {
    const DType real = plan_.options.dtype;
    // Losses are summed and scaled in float32, also those of layers that are none by their type.
    for (const int id : node.tops) {
      if (plan_.values[id].loss_weight != 0 && !node.layer->is_loss()) return real;
    }
    switch (node.layer->traits().is_view ? HalfRule::follows : node.layer->traits().half_rule) {
      case HalfRule::never:
        return real;
      case HalfRule::prefers:
        return storage_of(plan_.precision_of(node), real);
      case HalfRule::follows:
        break;
    }
    return node.bottoms.empty() ? real : plan_.values[node.bottoms[0]].dtype;
  }

  void visit(PlanNode node) {
    const Order order = order_for(node);
    const DType dtype = dtype_for(node), real = plan_.options.dtype;
    for (size_t j = 0; j < node.bottoms.size(); ++j) {
      if (!node.layer->reads_values(static_cast<int>(j))) continue;
      const bool label = !node.layer->differentiable(static_cast<int>(j));
      const int64_t channels = j == 0 ? padding_for(node, order, dtype) : 0;
      node.bottoms[j] =
          converted(node.bottoms[j], order, label ? real : dtype, channels, node.propagate[j]);
    }
    for (int id : node.tops) {
      PlanValue& value = plan_.values[id];
      value.order = value.shape.axes() >= 3 ? order : Order::row_major;
      value.dtype = node.layer->is_loss() ? real : dtype;
    }
    nodes_.push_back(std::move(node));
  }

  // Channels of bottom 0 in memory; 0: no padding. Only a copy from row-major is padded.
  int64_t padding_for(const PlanNode& node, Order order, DType dtype) const {
    if (order != Order::channels_last || node.bottoms.size() != 1 || node.propagate[0]) return 0;
    const PlanValue& from = plan_.values[node.bottoms[0]];
    return from.order == Order::row_major && from.shape.axes() >= 3
               ? node.layer->padded_channels(dtype)
               : 0;
  }

  // The value, or a copy of it in the wanted order and type, with this many channels in memory (0:
  // as many as it has).
  int converted(int value, Order order, DType dtype, int64_t channels, bool propagate) {
    const PlanValue& from = plan_.values[value];
    if (from.shape.axes() < 3) order = from.order;
    if (from.order == order && from.dtype == dtype && channels == 0) return value;
    const auto found = copies_.find({value, order, dtype, channels});
    if (found != copies_.end()) {
      plan_.values[found->second].needs_diff |= propagate;
      mark_backward(found->second, propagate);
      return found->second;
    }
    PlanValue to = from;
    to.order = order;
    to.dtype = dtype;
    to.channels = channels;
    to.output = false;
    to.loss_weight = 0;
    to.needs_diff = propagate;
    const int id = static_cast<int>(plan_.values.size());
    PlanNode node;
    node.message.set_name(cat(from.blob, "_reorder"));
    node.message.set_type("Reorder");
    node.place.layer = node.message.name();
    node.layer = make_layer(node.message, false);
    node.bottoms = {value};
    node.tops = {id};
    node.propagate = {propagate};
    node.backward = propagate;
    copies_[{value, order, dtype, channels}] = id;
    reorder_of_[id] = static_cast<int>(nodes_.size());
    plan_.values.push_back(std::move(to));
    nodes_.push_back(std::move(node));
    return id;
  }

  void mark_backward(int copy, bool propagate) {
    if (!propagate) return;
    nodes_[reorder_of_[copy]].backward = true;
    nodes_[reorder_of_[copy]].propagate = {true};
  }

  Plan& plan_;
  std::vector<PlanNode> nodes_;
  std::map<std::tuple<int, Order, DType, int64_t>, int> copies_;
  std::map<int, int> reorder_of_;
};

}  // namespace

void choose_formats(Plan& plan) { Formatter(plan).run(); }

}  // namespace crema
