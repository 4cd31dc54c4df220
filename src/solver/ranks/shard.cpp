#include "solver/ranks/shard.h"

#include <algorithm>

#include "base/error.h"
#include "kernels/move/reorder.h"
#include "kernels/optim/copy_segments.h"
#include "kernels/optim/update_rule.h"
#include "net/prototxt/prototxt.h"
#include "tensor/element.h"
#include "tensor/part.h"

namespace crema {

void check_sharding(const SolverFile& file) {
  const SolverParameter& s = file.solver;
  const RuleTraits& rule = update_rule(s.type());
  std::vector<std::string> possible;
  for (const RuleTraits& other : update_rules()) {
    if (other.scope == RuleTraits::Scope::element) possible.emplace_back(other.name);
  }
  const std::string last = possible.back();
  possible.pop_back();
  require(rule.scope == RuleTraits::Scope::element, file.where("type"), ": type \"", s.type(),
          "\" needs ", rule.scope == RuleTraits::Scope::blob_norms ? "the norms of " : "",
          "whole parameters, but -shard divides them among the ranks: choose ",
          join(possible, ", "), " or ", last, ", or leave -shard out");
  const auto refuse = [&](bool given, const char* field, const char* needs) {
    require(!given, file.where(field), ": ", field, " needs ", needs,
            ", but with -shard a rank has only those of its part of the parameters: remove one of "
            "the two");
  };
  const char* const norms = "the norms of whole parameters";
  refuse(s.larc(), "larc", norms);
  refuse(s.local_lr_auto(), "local_lr_auto", norms);
  refuse(s.clip_gradients_blob() >= 0, "clip_gradients_blob", norms);
  refuse(s.clip_gradients_layer() >= 0, "clip_gradients_layer", norms);
  refuse(s.grad_centralization(), "grad_centralization", "the means of whole gradients");
  refuse(s.snapshot_diff(), "snapshot_diff", "all gradients");
}

Shard::Shard(Net& net) : net_(net), elements_(net.parameter_arena().count()) {
  const Communicator& ranks = world();
  constexpr int64_t kAligned = 4;
  part_ = elements_ / ranks.ranks / kAligned * kAligned;
  require(part_ > 0, "-shard divides the parameters among ", ranks.ranks,
          " ranks, but the net has only ", elements_, " of them: leave -shard out");
  first_ = ranks.rank * part_;
  count_ = ranks.rank + 1 < ranks.ranks ? part_ : elements_ - first_;
  std::vector<Segment> measured;
  for (size_t i = 0; i < net.parameters().size(); ++i) {
    const Parameter& parameter = net.parameters()[i];
    if (parameter.learned) continue;
    Segment segment;
    segment.offset = net.parameter_offset(static_cast<int>(i));
    segment.count = parameter.data.elements();
    measured.push_back(segment);
  }
  measured_ = ChunkTable(net.context(), measured);
}

Communicator& Shard::world() const {
  Communicator* const world = net_.context().world();
  require(world != nullptr, "-shard divides the optimizer's state among ranks, but there is one");
  return *world;
}

Tensor Shard::own(const Tensor& arena) const { return part(arena, Shape{count_}, first_); }

// What the last rank has besides its part.
Tensor Shard::rest_of(const Tensor& arena) const {
  const int64_t divided = part_ * world().ranks;
  return divided < elements_ ? part(arena, Shape{elements_ - divided}, divided) : Tensor();
}

std::vector<Segment> Shard::within(const std::vector<Segment>& segments) const {
  std::vector<Segment> clipped;
  for (Segment segment : segments) {
    const int64_t begin = std::max(segment.offset, first_),
                  end = std::min(segment.offset + segment.count, first_ + count_);
    if (begin >= end) continue;
    segment.offset = begin - first_;
    segment.count = end - begin;
    clipped.push_back(segment);
  }
  return clipped;
}

void Shard::sum_gradients() const {
  Context& context = net_.context();
  const Tensor gradients = net_.diff_arena();
  world().sum_part(context, gradients.raw(), part_, element_of(gradients.dtype()));
  if (const Tensor rest = rest_of(gradients))
    world().sum(context, rest.raw(), rest.count(), element_of(rest.dtype()));
}

void Shard::share(const Tensor& arena) const {
  Context& context = net_.context();
  world().share_parts(context, arena.raw(), part_, element_of(arena.dtype()));
  const Tensor rest = rest_of(arena);
  if (!rest) return;
  // A sum of the last rank's values and zeros.
  if (world().rank + 1 < world().ranks) zero(context, rest);
  world().sum(context, rest.raw(), rest.count(), element_of(rest.dtype()));
}

void Shard::share_weights() const {
  Context& context = net_.context();
  const Tensor weights = net_.parameter_arena(), gradients = net_.diff_arena(),
               halves = net_.half_arena();
  // The update has read the gradients: there is room for what must not change.
  copy_segments(context, measured_, weights, gradients);
  share(weights);
  copy_segments(context, measured_, gradients, weights);
  zero(context, gradients);
  if (halves) reorder(context, weights, halves);
}

void Shard::sum(std::span<double> values) const { world().sum(values); }

void Shard::sum(double* value) const { world().sum(net_.context(), value, 1, Element::f64); }

void Shard::gather(const Tensor& kept, const std::function<void(const Tensor&)>& use) const {
  Context& context = net_.context();
  const Tensor arena = net_.diff_arena();
  copy(context, kept, own(arena));
  share(arena);
  use(arena);
  zero(context, arena);
}

void Shard::scatter(const std::function<void(const Tensor&)>& fill, const Tensor& kept) const {
  const Tensor arena = net_.diff_arena();
  zero(net_.context(), arena);
  fill(arena);
  copy(net_.context(), own(arena), kept);
  zero(net_.context(), arena);
}

}  // namespace crema
