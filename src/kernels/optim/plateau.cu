#include "kernels/optim/plateau.h"

#include "device/parallel.h"

namespace crema {
namespace {

struct Observe {
  Plateau* plateau;
  const float* losses;
  int64_t size;
  DeviceUpdateState* state;
  CREMA_HD void operator()(int64_t) const {
    Plateau& p = *plateau;
    const auto iteration = static_cast<int64_t>(state->updates);
    const int64_t oldest = iteration + 1 - p.average;
    const int64_t first = oldest > p.first_loss ? oldest : p.first_loss;
    double sum = 0;
    for (int64_t i = first; i <= iteration; ++i) sum += losses[i % size];
    p.observe(static_cast<float>(sum / static_cast<double>(iteration + 1 - first)), iteration);
    if (iteration >= p.warmup)
      state->rates[iteration % DeviceUpdateState::kRates].rate = p.rates[p.step] * p.scale;
  }
};

}  // namespace

void observe_plateau(Context& context, Plateau* plateau, const Tensor& losses,
                     DeviceUpdateState* state) {
  parallel_for(context, 1, Observe{plateau, losses.data<float>(), losses.count(), state});
}

}  // namespace crema
