#include "net/graph/loss_parts.h"

#include <algorithm>

#include "base/error.h"
#include "layers/divided_batch.h"
#include "layers/python_hook.h"
#include "net/graph/graph_builder.h"

namespace crema {
namespace {

// How a value depends on the batch.
struct Dependence {
  bool on_batch = false;
  int axis = -1;  // along which it has a part for each sample; -1: each part is of several samples
  const Node* mixer = nullptr;  // then: the first node whose results depend on several samples
  bool has_parts() const { return axis >= 0; }
  bool mixed() const { return on_batch && axis < 0; }
};

std::vector<Shape> shapes_of(const std::vector<Shape>& all, const std::vector<int>& values) {
  std::vector<Shape> shapes;
  for (const int value : values) shapes.push_back(all[value]);
  return shapes;
}

// The shapes of the tops for twice the batch; unchanged if the layer takes no other batch.
std::vector<Shape> doubled(const Node& node, const std::vector<Shape>& now,
                           const std::vector<Shape>& twice) {
  std::vector<Shape> tops = shapes_of(now, node.tops);
  if (const auto* divided = dynamic_cast<const DividedBatch*>(node.layer.get());
      divided && node.bottoms.empty()) {
    divided->double_samples(tops);
    return tops;
  }
  if (node.bottoms.empty()) {
    DataSource* const source = node.layer->source();
    const BatchShare share = source ? source->share() : BatchShare{};
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

// The axis that is twice as long; -1: not exactly one is.
int doubled_axis(const Shape& now, const Shape& twice) {
  int found = -1;
  if (now.axes() != twice.axes()) return found;
  for (int axis = 0; axis < now.axes(); ++axis) {
    if (twice[axis] == now[axis]) continue;
    if (found >= 0 || twice[axis] != 2 * now[axis]) return -1;
    found = axis;
  }
  return found;
}

// What the tops get from the bottoms that the layer reads.
Dependence of_bottoms(const Node& node, const std::vector<Dependence>& all,
                      const std::vector<Shape>& now) {
  Dependence found;
  const std::vector<Shape> bottoms = shapes_of(now, node.bottoms);
  for (size_t j = 0; j < node.bottoms.size(); ++j) {
    const Dependence& bottom = all[node.bottoms[j]];
    if (!bottom.on_batch || !node.layer->reads_values(static_cast<int>(j)) || found.mixed())
      continue;
    const bool independent = bottom.has_parts() && (node.layer->traits().is_view ||
                                                    node.layer->independent_along(
                                                        static_cast<int>(j), bottom.axis, bottoms));
    found = {true, independent ? bottom.axis : -1, bottom.mixed() ? bottom.mixer : &node};
  }
  return found;
}

std::vector<Dependence> dependences(const Graph& graph) {
  std::vector<Shape> now, twice;
  for (const Value& value : graph.values) now.push_back(value.shape);
  twice = now;
  std::vector<Dependence> all(graph.values.size());
  for (const Node& node : graph.nodes) {
    const Dependence bottoms = of_bottoms(node, all, now);
    const std::vector<Shape> tops = doubled(node, now, twice);
    for (size_t j = 0; j < node.tops.size(); ++j) {
      const int top = node.tops[j];
      twice[top] = tops[j];
      const int axis = doubled_axis(now[top], tops[j]);
      // A view has the elements of a sample together only if as many others come before them.
      const bool together =
          axis < 0 || !node.layer->traits().is_view ||
          now[top].count(0, axis) == now[node.bottoms[0]].count(0, std::max(bottoms.axis, 0));
      if (bottoms.on_batch || axis >= 0)
        all[top] = {true, !bottoms.mixed() && together ? axis : -1,
                    bottoms.mixed() ? bottoms.mixer : &node};
    }
  }
  return all;
}

// require() makes its text whether it is needed or not.
std::string mixed_in(const Dependence& of) {
  return of.mixer ? cat(" (in layer \"", of.mixer->place.layer, "\")") : "";
}

constexpr const char* kReduction =
    "a layer of type Reduction (reduction_param { operation: SUM }) after it, which has the "
    "loss_weight instead, learns the same";

constexpr const char* kPython =
    "its class does not say how; give it the attribute loss_parts = \"mean\" where the loss is a "
    "mean over the samples, \"sum\" where it is their sum, or train with -batch_mode per_gpu";

// For ranks that share each batch.
void check_shared(const Graph& graph, const Node& node, const Value& loss, LossParts parts,
                  const std::vector<Dependence>& dependences, const Communicator& world) {
  const std::string begin =
      cat("-batch_mode total: the loss \"", loss.blob, "\" cannot be combined from the parts of ",
          world.ranks, " ranks: ");
  // A value for each sample cannot be added to that of another rank's.
  const bool for_each = dependences[static_cast<size_t>(&loss - graph.values.data())].has_parts();
  if (!parts.combine() || for_each) {
    fail(begin, parts.why  ? parts.why
                : for_each ? kReduction
                : python_object(*node.layer)
                    ? kPython
                    : "a layer of this type does not say how; give loss_weight to the losses that "
                      "it reads, or train with -batch_mode per_gpu");
  }
  std::vector<Shape> shapes;
  for (const int bottom : node.bottoms) shapes.push_back(graph.values[bottom].shape);
  for (size_t j = 0; j < node.bottoms.size(); ++j) {
    const int bottom = static_cast<int>(j);
    if (!node.layer->reads_values(bottom)) continue;
    const Dependence& of_bottom = dependences[node.bottoms[j]];
    const std::string& blob = graph.values[node.bottoms[j]].blob;
    require(!of_bottom.mixed(), begin, "its bottom \"", blob,
            "\" is computed from several samples of the batch", mixed_in(of_bottom),
            ", and each rank has only some of them; train with -batch_mode per_gpu");
    if (!node.layer->differentiable(bottom)) continue;
    require(!of_bottom.has_parts() || node.layer->independent_along(bottom, of_bottom.axis, shapes),
            begin, "its bottom \"", blob, "\" has the samples of the batch along axis ",
            of_bottom.axis,
            ", where it does not count them; bring them to axis 0 (Permute), or train with "
            "-batch_mode per_gpu");
    require(of_bottom.on_batch || parts.gradient != PartsRule::sum, begin,
            "it is a sum, but its bottom \"", blob,
            "\" does not depend on the batch, so that each rank would add the whole of it; train "
            "with -batch_mode per_gpu");
  }
}

// The sum over the ranks is written to the loss itself.
void check_unread(const Graph& graph, const Node& node, int id) {
  const auto reads = [&](const Node& reader) {
    for (size_t j = 0; j < reader.bottoms.size(); ++j) {
      if (reader.bottoms[j] == id && reader.backward && reader.layer->traits().reads.bottom_at(j))
        return true;
    }
    return false;
  };
  // A Python layer keeps what it wrote for its backward.
  const bool own = node.layer->traits().reads.top && !python_object(*node.layer);
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
  const std::vector<SourceNode> sources = sources_of(graph);
  const bool shared = world.divides_batches &&
                      std::any_of(sources.begin(), sources.end(),
                                  [](const SourceNode& one) { return one.source.share().all > 0; });
  const std::vector<Dependence> of_values = shared ? dependences(graph) : std::vector<Dependence>();
  for (const Node& node : graph.nodes) {
    for (const int top : node.tops) {
      const Value& value = graph.values[top];
      if (value.loss_weight == 0) continue;
      at_layer(node.place, [&] {
        std::vector<Shape> bottoms;
        for (const int bottom : node.bottoms) bottoms.push_back(graph.values[bottom].shape);
        const LossParts parts = value.top == 0 ? node.layer->loss_parts(bottoms) : LossParts();
        if (shared) check_shared(graph, node, value, parts, of_values, world);
        check_unread(graph, node, top);
      });
    }
  }
}

}  // namespace crema
