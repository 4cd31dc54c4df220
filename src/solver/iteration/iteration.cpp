#include "solver/iteration/iteration.h"

#include "solver/iteration/cpu_iteration.h"
#include "solver/iteration/gpu_iteration.h"

namespace crema {

int64_t Iteration::at_once(int64_t) { return 1; }

void Iteration::run_batch(int number) {
  Net& net = parts_.net;
  forward(number);
  const Net::SideWork record = record_losses(number), early = early_update();
  if (!parts_.exchange) {
    if (parts_.after_forward) parts_.after_forward();
    return net.backward(number > 0, record, early);
  }
  GradientExchange& exchange = *parts_.exchange;
  exchange.begin_losses(record);
  const std::vector<int> parameters = early ? net.early_parameters() : std::vector<int>();
  bool updated = !early;
  const auto after = [&](int node) {
    exchange.after_node(node);
    if (updated || !exchange.has_begun(parameters)) return;
    net.context().on_communication_stream(early);  // behind their sums
    updated = true;
  };
  // After the last of several batches the gradients are the sums.
  const bool sends = is_last(number) && !parts_.optimizer.sharded();
  net.backward(number > 0, {}, {}, sends ? after : std::function<void(int)>());
  exchange.finish();
  if (parts_.after_forward) parts_.after_forward();
  if (!updated) early();
}

std::unique_ptr<Iteration> make_iteration(Iteration::Parts parts, int64_t kept_losses,
                                          bool capture) {
  if (parts.net.context().device() == Device::cpu)
    return std::make_unique<CpuIteration>(std::move(parts));
  return std::make_unique<GpuIteration>(std::move(parts), kept_losses, capture);
}

}  // namespace crema
