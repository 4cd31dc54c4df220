#include "net/loss_parts.h"

#include <algorithm>

#include "base/error.h"
#include "layers/divided_batch.h"
#include "layers/python_hook.h"
#include "net/graph_builder.h"

namespace crema {
namespace {

// How a value depends on the batch.
enum class Follows {
  nothing,  // not at all
  batch,    // it has a part for each sample: twice the batch, twice the values
  mixed,    // otherwise: computed from several samples
};

std::vector<Shape> shapes_of(const std::vector<Shape>& all, const std::vector<int>& values) {
  std::vector<Shape> shapes;
  for (const int value : values) shapes.push_back(all[value]);
  return shapes;
}

// The shapes of the tops for twice the batch; as they are where the layer takes no other batch.
std::vector<Shape> doubled(const Node& node, const std::vector<Shape>& now,
                           const std::vector<Shape>& twice) {
  std::vector<Shape> tops = shapes_of(now, node.tops);
  if (const auto* divided = dynamic_cast<const DividedBatch*>(node.layer.get());
      divided && node.bottoms.empty()) {
    divided->double_samples(tops);
    return tops;
  }
  if (node.bottoms.empty()) {
    const BatchShare share = node.layer->share();
    for (Shape& top : tops) {
      if (share.all > 0 && top.axes() > 0 && top[0] == share.count) top[0] *= 2;
    }
    return tops;
  }
  if (python_object(*node.layer)) {  // it may keep what it infers
    const Shape &before = now[node.bottoms[0]], &after = twice[node.bottoms[0]];
    for (Shape& top : tops) {
      if (top.count() == 1) continue;  // a loss of shape (1), where this rank has one sample
      if (top.axes() > 0 && before.axes() > 0 && top[0] == before[0]) top[0] = after[0];
    }
    return tops;
  }
  try {
    return node.layer->infer(shapes_of(twice, node.bottoms)).tops;
  } catch (const Error&) {
    return tops;
  }
}

// Error for a layer whose steps the ranks would divide.
void check_steps(const Node& node, const std::vector<Shape>& now, const std::vector<Shape>& twice) {
  if (node.bottoms.empty() || !node.layer->has_steps()) return;
  const Shape &before = now[node.bottoms[0]], &after = twice[node.bottoms[0]];
  if (before.axes() == 0 || after[0] != 2 * before[0]) return;
  at_layer(node.place, [] {
    fail(
        "-batch_mode total: the ranks divide axis 0 of its first bottom among themselves, but that "
        "has the steps of its sequences; train with -batch_mode per_gpu");
  });
}

std::vector<Follows> dependences(const Graph& graph) {
  std::vector<Shape> now, twice;
  for (const Value& value : graph.values) now.push_back(value.shape);
  twice = now;
  std::vector<Follows> all(graph.values.size(), Follows::nothing);
  for (const Node& node : graph.nodes) {
    bool depends = false;
    for (size_t j = 0; j < node.bottoms.size(); ++j) {
      depends = depends || (all[node.bottoms[j]] != Follows::nothing &&
                            node.layer->reads_values(static_cast<int>(j)));
    }
    check_steps(node, now, twice);
    const std::vector<Shape> tops = doubled(node, now, twice);
    for (size_t j = 0; j < node.tops.size(); ++j) {
      const int top = node.tops[j];
      twice[top] = tops[j];
      all[top] = tops[j].count() == 2 * now[top].count() ? Follows::batch
                 : depends                               ? Follows::mixed
                                                         : Follows::nothing;
    }
  }
  return all;
}

constexpr const char* kReduction =
    "a layer of type Reduction (reduction_param { operation: SUM }) after it, which has the "
    "loss_weight instead, learns the same";

constexpr const char* kPython =
    "its class does not say how; give it the attribute loss_parts = \"mean\" where the loss is a "
    "mean over the samples, \"sum\" where it is their sum, or train with -batch_mode per_gpu";

// Where ranks share each batch.
void check_shared(const Graph& graph, const Node& node, const Value& loss, LossParts parts,
                  const std::vector<Follows>& follows, const Communicator& world) {
  const std::string begin =
      cat("-batch_mode total: the loss \"", loss.blob, "\" cannot be combined from the parts of ",
          world.ranks, " ranks: ");
  // A value for each sample cannot be added to that of another rank's.
  const bool for_each = follows[static_cast<size_t>(&loss - graph.values.data())] == Follows::batch;
  if (!parts.combine() || for_each) {
    fail(begin, parts.why  ? parts.why
                : for_each ? kReduction
                : python_object(*node.layer)
                    ? kPython
                    : "a layer of this type does not say how; give loss_weight to the losses that "
                      "it reads, or train with -batch_mode per_gpu");
  }
  for (size_t j = 0; j < node.bottoms.size(); ++j) {
    if (!node.layer->differentiable(static_cast<int>(j))) continue;
    const int bottom = node.bottoms[j];
    require(follows[bottom] != Follows::mixed, begin, "its bottom \"", graph.values[bottom].blob,
            "\" is computed from several samples of the batch, and each rank has only some of "
            "them; train with -batch_mode per_gpu");
    require(follows[bottom] != Follows::nothing || parts.gradient != PartsRule::sum, begin,
            "it is a sum, but its bottom \"", graph.values[bottom].blob,
            "\" does not depend on the batch, so that each rank would add the whole of it; train "
            "with -batch_mode per_gpu");
  }
}

// The sum over the ranks is written to the loss itself.
void check_unread(const Graph& graph, const Node& node, int id) {
  const auto reads = [&](const Node& reader) {
    for (size_t j = 0; j < reader.bottoms.size(); ++j) {
      if (reader.bottoms[j] == id && reader.backward && reader.layer->reads().bottom_at(j))
        return true;
    }
    return false;
  };
  // A layer in Python keeps what it has written for its backward.
  const bool own = node.layer->reads().top && !python_object(*node.layer);
  const bool read =
      (node.backward && own) || std::any_of(graph.nodes.begin(), graph.nodes.end(), reads);
  require(!read, "\"", graph.values[id].blob,
          "\" has a loss_weight, but backward reads its values, which become sums over the ranks "
          "before that; ",
          kReduction);
}

}  // namespace

void check_loss_parts(const Graph& graph, const Communicator& world) {
  if (world.ranks == 1) return;
  const bool shared = world.divides_batches &&
                      std::any_of(graph.nodes.begin(), graph.nodes.end(),
                                  [](const Node& node) { return node.layer->share().all > 0; });
  const std::vector<Follows> follows = shared ? dependences(graph) : std::vector<Follows>();
  for (const Node& node : graph.nodes) {
    for (const int top : node.tops) {
      const Value& value = graph.values[top];
      if (value.loss_weight == 0) continue;
      at_layer(node.place, [&] {
        std::vector<Shape> bottoms;
        for (const int bottom : node.bottoms) bottoms.push_back(graph.values[bottom].shape);
        const LossParts parts = value.top == 0 ? node.layer->loss_parts(bottoms) : LossParts();
        if (shared) check_shared(graph, node, value, parts, follows, world);
        check_unread(graph, node, top);
      });
    }
  }
}

}  // namespace crema
