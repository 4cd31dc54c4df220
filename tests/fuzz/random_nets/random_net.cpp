#include "fuzz/random_nets/random_net.h"

#include <google/protobuf/text_format.h>

#include <algorithm>

#include "base/error.h"
#include "fuzz/random_nets/layer_kinds.h"
#include "net/prototxt/prototxt.h"

namespace crema::tests {
namespace {

void add_inputs(NetWriter& w) {
  const int channels[] = {1, 2, 3, 3, 4, 8, 16};
  for (int more = w.between(1, 2); more > 0; --more) {
    const int kind = w.between(0, 9);
    Shape shape{w.batch};
    if (kind < 6) {
      shape = {w.batch, channels[w.between(0, 6)], w.between(3, 11), w.between(3, 11)};
    } else if (kind < 7) {
      shape = {w.batch, w.between(1, 4), w.between(2, 5), w.between(3, 6), w.between(3, 6)};
    } else if (kind < 8) {
      shape = {w.batch, w.between(2, 6), w.between(3, 12)};
    } else {
      shape = {w.batch, w.between(3, 20)};
    }
    w.candidates.push_back(
        w.data(shape, w.maybe(80) ? "type: 'gaussian' std: 1" : "type: 'uniform' min: -1 max: 2"));
    // Written once, and read in every pass.
    if (w.maybe(15)) w.candidates.push_back(w.data(shape, "type: 'gaussian' std: 1", true));
  }
}

const std::vector<LayerKind>& family(NetWriter& w, const Shape& shape) {
  const int at = w.between(0, 99);
  if (shape.axes() >= 4 && at < 40) return vision_kinds();
  if (at < 50) return pointwise_kinds();
  if (at < 64) return norm_kinds();
  if (at < 82) return shape_kinds();
  return shape.axes() >= 4 ? vision_kinds() : sequence_kinds();
}

void add_body(NetWriter& w) {
  for (int layers = w.between(2, 16); layers > 0; --layers) {
    for (int attempt = 0; attempt < 20; ++attempt) {
      const int b = w.find([&](int i) { return w.shape(i).count() <= kMaxCount; });
      if (b < 0) return;
      const std::vector<int> tops = pick(w.dice, family(w, w.shape(b))).add(w, b);
      if (tops.empty()) continue;
      for (const int top : tops) {
        if (top != b) w.candidates.push_back(top);
      }
      break;
    }
    if (w.maybe(6)) {
      const int b = w.find([](int) { return true; });
      pick(w.dice, metric_kinds()).add(w, b);
    }
  }
}

bool ends(const NetWriter& w, int i) { return w.blob(i).readers == 0 && !w.blob(i).replaced; }

// Losses for most blobs that nothing reads; one at least has a gradient.
void add_losses(NetWriter& w) {
  int learning = w.find([&](int i) { return ends(w, i) && w.blob(i).gradient; });
  if (learning < 0) {
    int b = w.find([&](int i) { return w.shape(i).axes() >= 2; });
    if (b < 0) b = w.normal({w.batch, 6});
    learning =
        w.add_learned("InnerProduct", {b},
                      cat("inner_product_param { num_output: 4 ", weight_filler(w), " }"), 2);
    w.candidates.push_back(learning);
  }
  const std::vector<int> all = w.candidates;
  std::vector<int> losses;
  for (const int b : all) {
    if (!ends(w, b) || (b != learning && w.maybe(35))) continue;
    for (int attempt = 0; attempt < 20; ++attempt) {
      const std::vector<int> tops = pick(w.dice, loss_kinds()).add(w, b);
      losses.insert(losses.end(), tops.begin(), tops.end());
      if (!tops.empty()) break;
    }
  }
  if (losses.empty() || w.maybe(90)) return;
  // Losses that other layers read: a sum of two, or a factor of one.
  if (losses.size() > 1 && w.shape(losses[0]) == w.shape(losses[1]))
    w.set_loss_weight(w.add("Eltwise", {losses[0], losses[1]}), "0.5");
  else
    w.set_loss_weight(w.add("Power", {losses[0]}, "power_param { scale: 0.3 }"), "0.5");
}

void add_weighted_value(NetWriter& w) {
  if (w.maybe(w.for_ranks ? 3 : 20)) {
    const int b = w.find([&](int i) { return w.blob(i).gradient; });
    if (b >= 0) w.set_loss_weight(b, w.number(0.002, 0.02));
  }
}

// Rules that are smooth where a gradient is 0 except for rounding: a small delta would turn it into
// a whole step.
std::string solver_rules(NetWriter& w) {
  std::string text = cat("base_lr: ", w.number(0.005, 0.05), " lr_policy: 'fixed' max_iter: 4 ",
                         "random_seed: ", w.between(1, 100000), " snapshot_after_train: false ");
  const int kind = w.between(0, 9);
  if (kind == 0) return text + "type: 'Adam' momentum: 0.9 delta: 0.1";
  if (kind == 1) return text + "type: 'AdaGrad' delta: 0.1";
  if (kind == 2) return text + "type: 'RMSProp' rms_decay: 0.9 delta: 0.1";
  if (kind == 3) text += "type: 'Nesterov' ";
  text += "momentum: 0.9 ";
  if (w.maybe(50)) text += "weight_decay: 0.001 ";
  if (w.maybe(20)) text += "iter_size: 2 ";
  if (w.maybe(10)) text += "clip_gradients: 1 ";
  return text;
}

}  // namespace

std::string RandomNet::text(const std::string& more) const {
  std::string layers;
  google::protobuf::TextFormat::PrintToString(net, &layers);
  return cat("# random_nets --seed ", seed, " --first ", number, " --nets 1\n", rules, "\n", more,
             "\nnet_param {\n", layers, "}\n");
}

RandomNet make_random_net(uint64_t seed, uint64_t number) {
  Dice first({seed, mix(number, 1)});
  const bool for_ranks = first.one_in(2);
  const int batch = for_ranks ? 5 : 1 + static_cast<int>(first.below(6));
  NetWriter w(seed, number, batch, for_ranks);
  add_inputs(w);
  add_body(w);
  add_losses(w);
  add_weighted_value(w);
  return {seed, number, for_ranks, w.net(), solver_rules(w)};
}

RandomNet read_random_net(const std::string& path) {
  SolverParameter solver = read_solver_file(path).solver;
  RandomNet net;
  net.net = solver.net_param();
  net.for_ranks =
      std::all_of(net.net.layer().begin(), net.net.layer().end(), [](const LayerParameter& layer) {
        return (layer.type() != "BatchNorm" || layer.batch_norm_param().sync_bn()) &&
               (layer.type() != "BN" || layer.bn_param().sync_bn());
      });
  solver.clear_net_param();
  // Trials have their own.
  solver.clear_display();
  solver.clear_snapshot();
  solver.clear_snapshot_prefix();
  google::protobuf::TextFormat::PrintToString(solver, &net.rules);
  return net;
}

void count_types(const RandomNet& net, TypeCounts* counts) {
  for (const LayerParameter& layer : net.net.layer()) ++(*counts)[layer.type()];
}

}  // namespace crema::tests
