#include "solver/ranks/gradient_exchange.h"

#include <algorithm>

#include "base/error.h"
#include "kernels/move/reorder.h"
#include "kernels/optim/iteration.h"
#include "tensor/element.h"
#include "tensor/part.h"

namespace crema {

Wire wire_named(const std::string& name) {
  if (name == "fp32") return Wire::fp32;
  if (name == "bf16") return Wire::bf16;
  if (name == "fp16") return Wire::fp16;
  fail("-wire ", name, ": expected fp32, bf16 or fp16");
}

GradientExchange::GradientExchange(Net& net, Communicator& world, const ExchangeOptions& options)
    : net_(net), world_(world), options_(options) {
  if (options_.wire != Wire::fp32) {
    require(
        net.context().device() == Device::gpu,
        "-wire: gradients of 16 bits are for GPUs; the ranks compute on CPUs, which exchange fp32");
    narrow_ = Tensor(net.context(), net.diff_arena().shape(),
                     options_.wire == Wire::fp16 ? DType::f16 : DType::bf16);
  }
  const Tensor summed = narrow_ ? narrow_ : net.diff_arena();
  if (!summed) return;
  const BucketSizes sizes = this->sizes();
  world.expose(net.context(), summed.raw(), summed.bytes(),
               static_cast<size_t>(std::max(sizes.first, sizes.others)));
}

BucketSizes GradientExchange::sizes() const {
  return options_.buckets.value_or(bucket_sizes(net_.context().device()));
}

void GradientExchange::prepare() {
  if (generation_ != 0 && net_.generation() == generation_) return;
  generation_ = net_.generation();
  buckets_ = gradient_buckets(net_, sizes());
  int64_t counts = 0;
  for (const Net::Loss& loss : net_.losses()) counts += loss.count ? 1 : 0;
  counts_ = counts > 0 ? Tensor(net_.context(), Shape{counts}, net_.options().dtype) : Tensor();
}

// One sum for all of them, in the order of the context's queue: backward begins with the divisors.
void GradientExchange::sum_counts(const std::vector<Net::Loss>& losses) {
  if (!counts_) return;
  Context& context = net_.context();
  int64_t at = 0;
  for (const Net::Loss& loss : losses) {
    if (loss.count) copy(context, part(loss.count, {1}, 1), part(counts_, {1}, at++));
  }
  world_.sum(context, counts_.raw(), counts_.count(), element_of(counts_.dtype()));
  at = 0;
  for (const Net::Loss& loss : losses) {
    if (loss.count) divide_by_all(context, part(counts_, {1}, at++), loss.count, loss.value);
  }
}

void GradientExchange::begin_losses(const std::function<void()>& then) {
  Context& context = net_.context();
  prepare();
  begun_ = 0;
  const std::vector<Net::Loss> losses = net_.losses();
  sum_counts(losses);
  context.on_communication_stream([&] {
    for (const Net::Loss& loss : losses) multiply(context, loss.value, loss.value_share);
  });
  for (const Net::Loss& loss : losses) {
    const Tensor& value = loss.value;
    world_.begin_sum(context, value.raw(), value.count(), element_of(value.dtype()));
  }
  if (then) context.on_communication_stream(then);
}

void GradientExchange::begin(const GradientBucket& bucket) {
  Context& context = net_.context();
  const Tensor gradients = part(net_.diff_arena(), Shape{bucket.count}, bucket.first);
  if (!narrow_) {
    return world_.begin_sum(context, gradients.raw(), bucket.count, element_of(gradients.dtype()));
  }
  const Tensor narrow = part(narrow_, Shape{bucket.count}, bucket.first);
  context.on_communication_stream([&] {
    reorder(context, gradients, narrow);
    world_.sum(context, narrow.raw(), bucket.count, element_of(narrow.dtype()));
    reorder(context, narrow, gradients);
  });
}

void GradientExchange::after_node(int node) {
  // Backward runs the nodes in reverse.
  while (begun_ < buckets_.size() && buckets_[begun_].node >= node) begin(buckets_[begun_++]);
}

bool GradientExchange::has_begun(const std::vector<int>& parameters) const {
  for (const int parameter : parameters) {
    const int64_t first = net_.parameter_offset(parameter);
    const int64_t end = first + net_.parameters()[parameter].diff.elements();
    for (size_t i = begun_; i < buckets_.size(); ++i) {
      if (buckets_[i].first < end && first < buckets_[i].first + buckets_[i].count) return false;
    }
  }
  return true;
}

void GradientExchange::finish() { world_.wait(net_.context()); }

}  // namespace crema
