#include "tools/scale/prediction.h"

#include <algorithm>

#include "base/error.h"

namespace crema {

namespace {

constexpr int64_t kVector = 16;  // elements, of which buckets are multiples

int64_t elements_of(int64_t bytes, const StepProfile& profile) {
  return std::max(kVector, bytes / profile.element_size / kVector * kVector);
}

// When the gradients of each node can be sent, in seconds from the start of an iteration: once its
// backward has ended, in the last of several passes; parts of them when all have.
std::vector<double> ready_times(const StepProfile& profile, bool shards) {
  const double all = profile.iteration_seconds() - profile.update;
  std::vector<double> ready(profile.backward.size(), all);
  double now = all - profile.backward_seconds();
  for (size_t node = ready.size(); node-- > 0 && !shards;)
    ready[node] = now += profile.backward[node];
  return ready;
}

// Sorted by gain; those that gain less than 1 % are removed.
std::vector<WhatIf> worth(std::vector<WhatIf> all, const Prediction& now) {
  all.erase(std::remove_if(all.begin(), all.end(),
                           [&](const WhatIf& what) {
                             return what.prediction.samples_per_second <
                                    1.01 * now.samples_per_second;
                           }),
            all.end());
  std::stable_sort(all.begin(), all.end(), [](const WhatIf& a, const WhatIf& b) {
    return a.prediction.samples_per_second > b.prediction.samples_per_second;
  });
  return all;
}

StepProfile with_batch(StepProfile profile, int factor) {
  profile.batch *= factor;
  profile.forward *= factor;
  for (double& seconds : profile.backward) seconds *= factor;
  return profile;
}

}  // namespace

void Prediction::take(const StepProfile& profile, double iteration) {
  seconds = iteration;
  efficiency = profile.iteration_seconds() / seconds;
  samples_per_second = static_cast<double>(profile.samples()) * ranks / seconds;
}

Prediction predict(const StepProfile& profile, const Network& network, const Exchange& exchange,
                   int ranks) {
  Prediction result;
  result.ranks = ranks;
  result.hosts = (ranks + network.per_host - 1) / network.per_host;
  const std::vector<double> ready = ready_times(profile, exchange.shards);
  const double backward_end = profile.iteration_seconds() - profile.update;
  double free_at = 0, elements = 0, largest = -1;
  for (const GradientBucket& bucket :
       gradient_buckets(profile.gradients, {elements_of(exchange.buckets.first, profile),
                                            elements_of(exchange.buckets.others, profile),
                                            elements_of(exchange.buckets.last, profile)})) {
    const double count = static_cast<double>(bucket.count), bytes = count * exchange.wire;
    const Transfer sum =
        exchange.shards ? part_over(network, ranks, bytes) : sum_over(network, ranks, bytes);
    free_at = std::max(free_at, ready[bucket.node]) + sum.seconds;
    result.communication += sum.seconds;
    result.last_bucket = sum.seconds;
    elements += count;
    if (count > largest) result.algorithm = sum.algorithm;
    largest = std::max(largest, count);
  }
  result.exposed = std::max(0.0, free_at - backward_end);
  result.update = profile.update;
  if (exchange.shards && ranks > 1) {
    result.update /= ranks;
    const double bytes = elements * static_cast<double>(profile.element_size);
    const double gather = part_over(network, ranks, bytes).seconds;
    result.communication += gather;
    result.exposed += gather;
  }
  result.take(profile, backward_end + result.exposed + result.update);
  return result;
}

std::vector<WhatIf> limits_of(const StepProfile& profile, const Network& network,
                              const Exchange& exchange, int ranks) {
  constexpr double unlimited = 1e30;
  const Prediction now = predict(profile, network, exchange, ranks);
  std::vector<WhatIf> all;
  const auto add = [&](const std::string& change, const Network& n) {
    all.push_back({change, predict(profile, n, exchange, ranks)});
  };
  Network without = network;
  without.inside_latency = without.between_latency = without.start = 0;
  add("latency", without);
  without = network;
  without.between = unlimited;
  if (now.hosts > 1) add("bandwidth between hosts", without);
  without = network;
  without.inside = unlimited;
  add("bandwidth inside a host", without);
  const auto add_saved = [&](const std::string& change, double saved) {
    all.push_back({change, now});
    all.back().prediction.take(profile, now.seconds - saved);
  };
  add_saved("the last sum, which begins after backward", std::min(now.exposed, now.last_bucket));
  add_saved("the update", now.update);
  return worth(all, now);
}

std::vector<WhatIf> remedies_of(const StepProfile& profile, const Network& network,
                                const Exchange& exchange, int ranks) {
  std::vector<WhatIf> all;
  const auto add = [&](const std::string& change, const StepProfile& p, const Network& n,
                       const Exchange& e) {
    all.push_back({change, predict(p, n, e, ranks)});
  };
  Exchange other = exchange;
  other.wire = 2;
  // Sharded gradients are sent as they are.
  if (exchange.wire > 2 && !exchange.shards)
    add("16 bits on the wire: -wire bf16", profile, network, other);
  other = exchange;
  other.buckets.others *= 4;
  add(cat("buckets of ", other.buckets.others >> 20, " MiB"), profile, network, other);
  other = exchange;
  other.buckets.others = std::max<int64_t>(other.buckets.others / 4, 1 << 20);
  if (other.buckets.others < exchange.buckets.others)
    add(cat("buckets of ", other.buckets.others >> 20, " MiB"), profile, network, other);
  other = exchange;
  other.shards = !exchange.shards;
  if (exchange.wire > 2)
    add(exchange.shards ? "without -shard" : "an update divided among ranks: -shard", profile,
        network, other);
  Network faster = network;
  faster.between *= 2;
  if (ranks > network.per_host) add("twice the bandwidth between hosts", profile, faster, exchange);
  faster = network;
  faster.inside *= 2;
  add("twice the bandwidth inside the host", profile, faster, exchange);
  faster = network;
  faster.two_levels = true;
  add("sums in two levels, as NCCL makes them with NVLS", profile, faster, exchange);
  faster = network;
  faster.inside_latency /= 2;
  faster.between_latency /= 2;
  faster.start /= 2;
  add("half the latency", profile, faster, exchange);
  add(cat("a batch of ", 2 * profile.batch, ", if it takes twice as long"), with_batch(profile, 2),
      network, exchange);
  StepProfile accumulated = profile;
  accumulated.iter_size *= 2;
  add(cat("iter_size: ", accumulated.iter_size), accumulated, network, exchange);
  return worth(all, predict(profile, network, exchange, ranks));
}

}  // namespace crema
