// Pass "format": the order of every value. Layers that run faster channels-last get it, layers that
// take any order follow their first bottom, the others get plain order; Reorder nodes stand where
// the order changes.
#include <map>

#include "net/plan.h"

namespace crema {
namespace {

class Formatter {
 public:
  explicit Formatter(Plan& plan) : plan_(plan) {}

  void run() {
    for (PlanNode& node : plan_.nodes) visit(std::move(node));
    plan_.nodes = std::move(nodes_);
    for (size_t i = 0; i < plan_.nodes.size(); ++i) {
      for (int value : plan_.nodes[i].tops) plan_.values[value].producer = static_cast<int>(i);
    }
  }

 private:
  Order order_for(const PlanNode& node) const {
    switch (node.layer->order_rule()) {
      case OrderRule::plain:
        return Order::plain;
      case OrderRule::prefers_channels_last:
        return plan_.options.format ? Order::channels_last : Order::plain;
      case OrderRule::any:
        break;
    }
    for (int value : node.bottoms) {
      if (plan_.values[value].shape.axes() >= 3) return plan_.values[value].order;
    }
    return Order::plain;
  }

  void visit(PlanNode node) {
    const Order order = order_for(node);
    for (size_t j = 0; j < node.bottoms.size(); ++j)
      node.bottoms[j] = in_order(node.bottoms[j], order, node.propagate[j]);
    for (int value : node.tops) {
      plan_.values[value].order = plan_.values[value].shape.axes() >= 3 ? order : Order::plain;
    }
    nodes_.push_back(std::move(node));
  }

  // The value, or a copy of it in the wanted order.
  int in_order(int value, Order order, bool propagate) {
    const PlanValue& from = plan_.values[value];
    if (from.shape.axes() < 3 || from.order == order) return value;
    const auto found = copies_.find({value, order});
    if (found != copies_.end()) {
      plan_.values[found->second].needs_diff |= propagate;
      mark_backward(found->second, propagate);
      return found->second;
    }
    PlanValue to = from;
    to.order = order;
    to.output = false;
    to.loss_weight = 0;
    to.needs_diff = propagate;
    const int id = static_cast<int>(plan_.values.size());
    PlanNode node;
    node.message.set_name(cat(from.blob, "_reorder"));
    node.message.set_type("Reorder");
    node.layer = make_layer(node.message, false);
    node.bottoms = {value};
    node.tops = {id};
    node.propagate = {propagate};
    node.backward = propagate;
    copies_[{value, order}] = id;
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
  std::map<std::pair<int, Order>, int> copies_;
  std::map<int, int> reorder_of_;
};

}  // namespace

void choose_formats(Plan& plan) { Formatter(plan).run(); }

}  // namespace crema
