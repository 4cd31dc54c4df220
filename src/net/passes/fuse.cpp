// Pass "fuse": joins neighbouring layers into one. A joined node's type is the members' types with
// '+' between ("Sum" for an Eltwise sum); its message holds the parameters of all members, its
// parameter blobs are theirs in order. A join happens only when that type is registered and nobody
// else reads the blobs in between.
#include <algorithm>

#include "net/plan.h"
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
      const std::string& type = plan_.nodes[i].message.type();
      if (dead_[i]) continue;
      if (type == "BatchNorm" || type == "BN") {
        join_batch_norm(static_cast<int>(i));
      } else if (LayerRegistry::has(type + "+ReLU")) {
        join_relu(static_cast<int>(i));
      } else if (LayerRegistry::has(type + "+Dropout")) {
        join_dropout(static_cast<int>(i));
      }
      if (!dead_[i] && LayerRegistry::has(plan_.nodes[i].message.type() + "+Pooling"))
        join_pooling(static_cast<int>(i));
      if (!dead_[i] && LayerRegistry::has(plan_.nodes[i].message.type() + "+SoftmaxWithLoss"))
        join_loss(static_cast<int>(i));
    }
    std::vector<PlanNode> alive;
    for (size_t i = 0; i < plan_.nodes.size(); ++i) {
      if (!dead_[i]) alive.push_back(std::move(plan_.nodes[i]));
    }
    plan_.nodes = std::move(alive);
    for (size_t i = 0; i < plan_.nodes.size(); ++i) {
      for (int value : plan_.nodes[i].tops) plan_.values[value].producer = static_cast<int>(i);
    }
  }

 private:
  // The only reader of the node's only top, when nothing else needs that value; -1 otherwise.
  int sole_reader(int node) const {
    const PlanNode& n = plan_.nodes[node];
    if (n.tops.size() != 1) return -1;
    const PlanValue& value = plan_.values[n.tops[0]];
    const auto& readers = readers_[n.tops[0]];
    if (readers.size() != 1 || value.output || value.loss_weight != 0) return -1;
    return readers[0].first;
  }

  bool is_type(int node, const char* type) const {
    return node >= 0 && plan_.nodes[node].message.type() == type;
  }

  bool backward_agrees(int a, int b) const {
    return plan_.nodes[a].backward == plan_.nodes[b].backward;
  }

  // An InnerProduct whose weights are a bottom; those of joined types are parameters.
  bool is_given_weights(int node) const {
    return is_type(node, "InnerProduct") && plan_.nodes[node].bottoms.size() > 1;
  }

  void join_relu(int node) {
    if (is_given_weights(node)) return;
    const int relu = sole_reader(node);
    if (!is_type(relu, "ReLU") || !backward_agrees(node, relu)) return;
    if (plan_.nodes[relu].message.relu_param().negative_slope() < 0)
      return;  // the sign of y no longer tells that of x
    join({node, relu}, plan_.nodes[node].message.type() + "+ReLU");
  }

  // Behind a ReLU, which tells its gradient what was dropped.
  void join_dropout(int node) {
    const int drop = sole_reader(node);
    if (!is_type(drop, "Dropout") || !backward_agrees(node, drop)) return;
    join({node, drop}, plan_.nodes[node].message.type() + "+Dropout");
  }

  // The longest join that is worth it.
  void join_pooling(int node) {
    const int pool = sole_reader(node);
    if (!is_type(pool, "Pooling") || !backward_agrees(node, pool)) return;
    if (plan_.nodes[node].message.relu_param().negative_slope() != 0) return;
    const std::string type = plan_.nodes[node].message.type() + "+Pooling";
    const int drop = sole_reader(pool);
    if (is_type(drop, "Dropout") && backward_agrees(pool, drop) &&
        join({node, pool, drop}, type + "+Dropout"))
      return;
    join({node, pool}, type);
  }

  // Of scores; labels are blobs like any other.
  void join_loss(int node) {
    if (is_given_weights(node)) return;
    const int loss = sole_reader(node);
    if (!is_type(loss, "SoftmaxWithLoss") || !backward_agrees(node, loss)) return;
    const PlanNode& last = plan_.nodes[loss];
    if (last.bottoms.size() == 2 && last.bottoms[0] == plan_.nodes[node].tops[0])
      join({node, loss}, plan_.nodes[node].message.type() + "+SoftmaxWithLoss");
  }

  void join_batch_norm(int node) {
    const LayerParameter& message = plan_.nodes[node].message;
    const BatchNormParameter& p = message.batch_norm_param();
    std::vector<int> members = {node};
    std::string type = message.type();
    if (type == "BatchNorm" && !p.scale_bias() && !p.bias_term()) {
      const int scale = sole_reader(node);
      if (!is_type(scale, "Scale") || !backward_agrees(node, scale) || !scales_channels(scale))
        return;
      members.push_back(scale);
      type += "+Scale";
    }
    const int last = members.back();
    // The longest join that is registered wins.
    const int sum = sole_reader(last);
    const int after_sum = is_plain_sum(sum) && backward_agrees(last, sum) ? sole_reader(sum) : -1;
    const int relu = sole_reader(last);
    if (is_max_relu(after_sum) && backward_agrees(sum, after_sum) &&
        LayerRegistry::has(type + "+Sum+ReLU")) {
      if (members.size() == 2 && join_pair(members, sum, after_sum)) return;
      members.insert(members.end(), {sum, after_sum});
      type += "+Sum+ReLU";
    } else if (is_max_relu(relu) && backward_agrees(last, relu) &&
               LayerRegistry::has(type + "+ReLU")) {
      members.push_back(relu);
      type += "+ReLU";
    }
    if (members.size() > 1) join(members, type);
  }

  // With the other bottom of the sum, when that comes out of a like BatchNorm and Scale.
  bool join_pair(const std::vector<int>& one, int sum, int relu) {
    const std::vector<int>& added = plan_.nodes[sum].bottoms;
    const int other = added[added[0] == plan_.nodes[one[1]].tops[0] ? 1 : 0];
    const int scale = plan_.values[other].producer;
    if (scale < 0 || dead_[scale] || !is_type(scale, "Scale") || sole_reader(scale) != sum)
      return false;
    const int norm = plan_.values[plan_.nodes[scale].bottoms[0]].producer;
    if (norm < 0 || dead_[norm] || !is_type(norm, "BatchNorm") || sole_reader(norm) != scale ||
        !scales_channels(scale) || !backward_agrees(scale, sum) || !backward_agrees(norm, scale))
      return false;
    const auto same = [&](const auto& a, const auto& b) {
      return a.SerializeAsString() == b.SerializeAsString();
    };
    const LayerParameter &norm_one = plan_.nodes[one[0]].message,
                         &scale_one = plan_.nodes[one[1]].message;
    const LayerParameter &norm_two = plan_.nodes[norm].message,
                         &scale_two = plan_.nodes[scale].message;
    return same(norm_one.batch_norm_param(), norm_two.batch_norm_param()) &&
           same(scale_one.scale_param(), scale_two.scale_param()) &&
           join({one[0], one[1], norm, scale, sum, relu},
                "BatchNorm+Scale+BatchNorm+Scale+Sum+ReLU");
  }

  bool scales_channels(int node) const {
    const PlanNode& n = plan_.nodes[node];
    const ScaleParameter& p = n.message.scale_param();
    const int axes = plan_.values[n.bottoms[0]].shape.axes();
    const bool bounded = p.has_min_value() || p.has_max_value();
    return n.bottoms.size() == 1 && p.num_axes() == 1 && axes >= 2 && !bounded &&
           (p.axis() == 1 || p.axis() == 1 - axes);
  }

  bool is_max_relu(int node) const {
    return is_type(node, "ReLU") && plan_.nodes[node].message.relu_param().negative_slope() == 0;
  }

  bool is_plain_sum(int node) const {
    if (!is_type(node, "Eltwise")) return false;
    const PlanNode& n = plan_.nodes[node];
    const EltwiseParameter& p = n.message.eltwise_param();
    return n.bottoms.size() == 2 && n.bottoms[0] != n.bottoms[1] &&
           p.operation() == EltwiseParameter::SUM && p.coeff_size() == 0;
  }

  // One of the first `count` members makes this value.
  bool made_by(const std::vector<int>& members, size_t count, int value) const {
    return std::any_of(members.begin(), members.begin() + static_cast<int64_t>(count),
                       [&](int member) { return plan_.nodes[member].tops[0] == value; });
  }

  // False: not done, as there is no such layer or it is not worth it.
  bool join(const std::vector<int>& members, const std::string& type) {
    if (!LayerRegistry::has(type)) return false;
    PlanNode& first = plan_.nodes[members.front()];
    PlanNode joined = first;
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
      joined.message.MergeFrom(more);
      for (size_t j = 0; j < next.bottoms.size(); ++j) {
        if (made_by(members, m, next.bottoms[j])) continue;
        joined.bottoms.push_back(next.bottoms[j]);
        joined.propagate.push_back(next.propagate[j]);
      }
      joined.parameters.insert(joined.parameters.end(), next.parameters.begin(),
                               next.parameters.end());
      joined.members.insert(joined.members.end(), next.members.begin(), next.members.end());
    }
    joined.tops = plan_.nodes[members.back()].tops;
    joined.message.set_type(type);
    joined.message.mutable_top()->CopyFrom(plan_.nodes[members.back()].message.top());
    joined.layer = make_layer(joined.message, first.layer->training(), first.layer->folder());
    std::vector<Shape> bottoms;
    for (int value : joined.bottoms) bottoms.push_back(plan_.values[value].shape);
    joined.layer->setup(context_, bottoms);
    if (!joined.layer->worth_joining(context_, bottoms, plan_.precision_of(joined))) return false;
    joined.layer->draw_as(*plan_.nodes[members.back()].layer);
    for (int member : members) dead_[member] = true;
    // At the place of the last member: there all its bottoms exist.
    plan_.nodes[members.back()] = std::move(joined);
    dead_[members.back()] = false;
    return true;
  }

  Context& context_;
  Plan& plan_;
  std::vector<std::vector<std::pair<int, int>>> readers_;
  std::vector<bool> dead_;
};

}  // namespace

void fuse_layers(Context& context, Plan& plan) { Fuser(context, plan).run(); }

}  // namespace crema
