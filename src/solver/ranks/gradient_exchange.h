// GradientExchange: sums what the ranks of a training compute from their parts of a batch: the
// losses and, in buckets that go on their way while backward still runs, the gradients.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "device/communicator.h"
#include "net/net.h"
#include "solver/ranks/gradient_buckets.h"

namespace crema {

// How gradients travel: as they are, or rounded to 16 bits, which is half as much (on GPUs; fp16
// overflows above 65504).
enum class Wire { fp32, bf16, fp16 };
// "fp32", "bf16", "fp16"; Error otherwise.
Wire wire_named(const std::string& name);

struct ExchangeOptions {
  Wire wire = Wire::fp32;
  std::optional<BucketSizes> buckets = std::nullopt;  // none: bucket_sizes()
};

class GradientExchange {
 public:
  // All ranks make one. Net and communicator must outlive this. Error if the ranks compute on CPUs and
  // the wire has 16 bits.
  GradientExchange(Net& net, Communicator& world, const ExchangeOptions& options);

  // Call after a forward pass. Replaces the losses by their means over the samples of all ranks, and
  // the counts that some losses divide by, which backward reads, by the sums over all ranks. Queues
  // `then` after that on the same stream, so it runs in parallel with the caller's next work.
  void begin_losses(const std::function<void()>& then = {});
  // Call from Net::backward() after each node: sends the buckets whose gradients are final.
  void after_node(int node);
  // Whether the sums of these parameters' gradients have been queued in this pass.
  bool has_begun(const std::vector<int>& parameters) const;
  // Waits for every transfer that was begun: on a GPU the main stream waits, not the host.
  void finish();

 private:
  BucketSizes sizes() const;
  void prepare();
  void begin(const GradientBucket& bucket);
  void sum_counts(const std::vector<Net::Loss>& losses);

  Net& net_;
  Communicator& world_;
  ExchangeOptions options_;
  uint64_t generation_ = 0;  // of the net's plan that the buckets are for
  std::vector<GradientBucket> buckets_;
  size_t begun_ = 0;  // of this pass
  Tensor narrow_;     // gradients in 16 bits, with the layout of the arena
  Tensor counts_;     // one for each loss that divides by a count; empty if there are none
};

}  // namespace crema
