#include "solver/iteration/cpu_iteration.h"

namespace crema {

void CpuIteration::begin(const Request& request) {
  request_ = request;
  double sum = 0;
  for (int number = 0; number < parts_.iter_size; ++number) {
    run_batch(number);
    if (parts_.after_backward) parts_.after_backward();
    sum += parts_.net.loss();
  }
  loss_ = sum / parts_.iter_size;
}

void CpuIteration::forward(int number) {
  const uint64_t pass = request_.pass + static_cast<uint64_t>(number);
  if (request_.watched && number == 0 && parts_.watch_forward) {
    parts_.watch_forward(request_.iteration, pass);
  } else {
    parts_.net.forward(pass);
  }
}

std::optional<Optimizer::Clipped> CpuIteration::end(int64_t iteration, double rate, bool) {
  if (parts_.optimizer.sharded()) parts_.optimizer.reduce_gradients();
  return parts_.optimizer.update(rate, iteration);
}

std::vector<double> CpuIteration::losses(int64_t, int64_t) { return {loss_}; }

}  // namespace crema
