#include "solver/ranks/ranks.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/system.h"
#include "kernels/optim/iteration.h"
#include "net/graph/graph.h"
#include "solver/events/checksum.h"
#include "solver/events/run_identity.h"
#include "solver/ranks/gradient_exchange.h"
#include "tensor/element.h"

namespace crema {
namespace {

// How many records each source of the net has, and a hash of its first.
std::string data_of(const Net& net) {
  std::string text;
  for (const auto& [node, source] : sources_of(net.graph())) {
    if (source.share().all == 0) continue;
    text += cat(text.empty() ? "" : ", ", source.count_records(), " records, first ",
                hex_of(source.hash_of_first()));
  }
  return text;
}

}  // namespace

void fail_together(const Communicator& world, const std::string& message) {
  throw RankLost(message, world.rank > 0);
}

std::string of_rank_0(const Context& context, const std::string& text) {
  Communicator* const world = context.world();
  return world ? world->gather(world->rank == 0 ? text : "")[0] : text;
}

bool agreed(const Context& context, bool of_rank_0) {
  if (!context.world()) return of_rank_0;
  return crema::of_rank_0(context, of_rank_0 ? "yes" : "no") == "yes";
}

void combine_over_ranks(const Net& net, std::span<RankValue> values) {
  Communicator* const world = net.context().world();
  if (!world || values.empty()) return;
  // For each value: the sum of the ranks' parts, the count, the number of ranks that have it.
  std::vector<double> sums;
  for (const RankValue& one : values) {
    const double weight = one.parts == PartsRule::sum       ? 1
                          : one.parts == PartsRule::counted ? one.divisor
                                                            : net.loss_share();
    sums.insert(sums.end(), {one.value.value_or(0) * weight, one.count, one.value ? 1.0 : 0.0});
  }
  world->sum(sums);
  for (size_t i = 0; i < values.size(); ++i) {
    RankValue& one = values[i];
    const double* const sum = &sums[3 * i];
    if (static_cast<int>(sum[2]) != world->ranks) {
      one.value.reset();
    } else {
      one.divisor = std::max(sum[1], 1.0);
      one.count = sum[1];
      one.value = one.parts == PartsRule::counted ? sum[0] / one.divisor : sum[0];
    }
  }
}

void average_statistics(Net& net) {
  Context& context = net.context();
  Communicator* const world = context.world();
  if (!world) return;
  bool any = false;
  for (const Parameter& parameter : net.parameters()) {
    if (parameter.learned) continue;
    const Tensor& data = parameter.data;
    const auto count = static_cast<int64_t>(data.bytes() / size_of(data.dtype()));
    multiply(context, data, net.loss_share());
    world->sum(context, data.raw(), count, element_of(data.dtype()));
    any = true;
  }
  if (any) net.parameters_changed();
}

void compare_weights(Net& net, int64_t iteration) {
  Communicator* const world = net.context().world();
  if (!world) return;
  const std::vector<uint64_t> hashes = hashes_of_parameters(net);
  const std::string mine(reinterpret_cast<const char*>(hashes.data()),
                         hashes.size() * sizeof(uint64_t));
  const std::vector<std::string> all = world->gather(mine);
  for (size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    const auto [a, b] =
        std::mismatch(all[0].begin(), all[0].end(), all[rank].begin(), all[rank].end());
    const size_t number = static_cast<size_t>(a - all[0].begin()) / sizeof(uint64_t);
    const std::vector<Parameter>& parameters = net.graph().parameters;
    const Parameter& first = parameters[std::min(number, parameters.size() - 1)];
    fail_together(
        *world, cat("after iteration ", iteration, " rank ", rank,
                    " has other weights than rank 0; the first that differ are parameter ",
                    first.index, " of layer \"", first.layer,
                    "\". Ranks stay equal as long as all run the same program on the same kind of "
                    "processor or GPU with the same flags; resume from the last snapshot"));
  }
}

void compare_facts(Communicator& world, const std::vector<RankFact>& facts) {
  std::string mine = host_name();
  for (const RankFact& fact : facts) mine += "\n" + fact.value;
  const std::vector<std::string> all = world.gather(mine);
  const std::vector<std::string> of_0 = split(all[0], '\n');
  for (size_t rank = 1; rank < all.size(); ++rank) {
    const std::vector<std::string> of_rank = split(all[rank], '\n');
    for (size_t i = 0; i < facts.size(); ++i) {
      const std::string theirs = i + 1 < of_rank.size() ? of_rank[i + 1] : "",
                        expected = i + 1 < of_0.size() ? of_0[i + 1] : "";
      if (theirs == expected) continue;
      fail_together(world, cat("rank ", rank, " on ", of_rank[0], " has another ", facts[i].what,
                               " than rank 0 on ", of_0[0], " (", theirs, ", not ", expected,
                               "): ", facts[i].hint));
    }
  }
}

Agreement::Wish Agreement::exchange(int64_t iteration, const Wish& mine) {
  constexpr double kSeconds = 0.25;
  constexpr double kMost = 1000;
  // Rank 0's clock decides when the next exchange is.
  int64_t pause = 1;
  if (rate_ > 0) {
    pause = std::llround(std::clamp<double>(kSeconds * rate_, 1, kMost));
    // A first look at the speed may be far off.
    pause = std::min(pause, 8 * (iteration - last_));
  }
  const bool decides = world_.rank == 0;
  double sums[] = {static_cast<double>(mine.stop), static_cast<double>(mine.snapshot),
                   static_cast<double>(mine.snapshot_stop),
                   static_cast<double>(decides && mine.timed_snapshot),
                   decides ? static_cast<double>(pause) : 0.0};
  world_.sum(sums);
  if (settle_) settle_();
  const Clock::time_point now = Clock::now();
  if (last_ >= 0 && iteration > last_) {
    const double span = std::chrono::duration<double>(now - last_at_).count();
    rate_ = static_cast<double>(iteration - last_) / std::max(span, 1e-9);
  }
  last_ = iteration;
  last_at_ = now;
  next_ = iteration + static_cast<int64_t>(sums[4]);
  return {sums[0] > 0, sums[1] > 0, sums[2] > 0, sums[3] > 0};
}

Ranks::Ranks(Net& net, const ExchangeOptions& options) {
  Communicator* const world = net.context().world();
  if (!world) return;
  exchange_ = std::make_unique<GradientExchange>(net, *world, options);
  agreement_.emplace(*world, [&context = net.context()] {
    const RankPause pause(context);  // many iterations may be queued
    context.synchronize();
  });
}

Ranks::~Ranks() = default;

void Ranks::join(Net& net, int64_t iteration, const std::vector<RankFact>& of_solver) {
  Communicator& world = *net.context().world();
  std::vector<RankFact> facts = {
      {"meaning of batch_size", world.divides_batches ? "total" : "per_gpu",
       "give all ranks the same -batch_mode"},
      {"net", hash_of_text(net.graph().net), "give all ranks the same files and flags"}};
  facts.insert(facts.end(), of_solver.begin(), of_solver.end());
  facts.push_back({"training data", data_of(net),
                   "each rank reads the whole data, so it must be the same everywhere"});
  facts.push_back({"iteration to begin with", cat(iteration), "give all ranks the same -snapshot"});
  for (const Parameter& parameter : net.graph().parameters) {
    facts.push_back(
        {cat("shape of parameter ", parameter.index, " of layer \"", parameter.layer, "\""),
         parameter.shape.str(),
         "it depends on the rank's part of the batch; train with -batch_mode per_gpu"});
  }
  const std::vector<uint64_t> hashes = hashes_of_parameters(net);
  facts.push_back({"first weights",
                   hex_of(Checksum().add(hashes.data(), hashes.size() * sizeof(uint64_t)).value()),
                   "give all ranks the same -weights or -snapshot"});
  compare_facts(world, facts);
  net.context().log().info(
      cat("Training with ", world.ranks, " ranks through ", world.engine(),
          world.divides_batches ? ": they share each batch" : ": each has batches of its own"));
}

}  // namespace crema
