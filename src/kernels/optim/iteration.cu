#include "kernels/optim/iteration.h"

#include "device/parallel.h"
#include "tensor/on.h"

namespace crema {
namespace {

template <typename T>
struct NoteLoss {
  const T* value;
  int64_t count;
  double share;
  bool add, stops;
  DeviceUpdateState* state;
  float* losses;
  int64_t size;
  CREMA_HD void operator()(int64_t) const {
    double sum = 0;
    for (int64_t k = 0; k < count; ++k) sum += value[k];
    float& goal = losses[state->updates % size];
    goal = static_cast<float>((add ? goal : 0) + share * sum);
    // Keeps the weights with which the loss was computed.
    if (stops && goal - goal != 0) state->finite = 0, state->diverged = 1;
  }
};

template <typename T>
struct SeedLoss {
  double weight;
  const DeviceUpdateState* state;
  T* seed;
  CREMA_HD void operator()(int64_t i) const {
    seed[i] = static_cast<T>(weight * state->loss_scale);
  }
};

template <typename T>
struct Multiply {
  T* values;
  double factor;
  CREMA_HD void operator()(int64_t i) const { values[i] = static_cast<T>(values[i] * factor); }
};

template <typename T>
struct DivideByAll {
  const T* all;
  T *divisor, *loss;
  CREMA_HD void operator()(int64_t) const {
    const T own = *divisor;
    *divisor = *all < 1 ? T(1) : *all;
    *loss *= own / *divisor;
  }
};

struct NextPass {
  uint64_t* pass;
  CREMA_HD void operator()(int64_t) const { ++*pass; }
};

}  // namespace

void note_loss(Context& context, const Tensor& value, double share, bool add,
               const LiveUpdate& live, const Tensor& losses) {
  on(value, [&]<typename T>() {
    parallel_for(context, 1,
                 NoteLoss<T>{value.data<T>(), value.count(), share, add,
                             live.limits.stops || live.limits.skips, live.state,
                             losses.data<float>(), losses.count()});
  });
}

void seed_loss(Context& context, double weight, const DeviceUpdateState* state,
               const Tensor& seed) {
  on(seed, [&]<typename T>() {
    parallel_for(context, seed.count(), SeedLoss<T>{weight, state, seed.data<T>()});
  });
}

void multiply(Context& context, const Tensor& values, double factor) {
  on(values, [&]<typename T>() {
    parallel_for(context, values.count(), Multiply<T>{values.data<T>(), factor});
  });
}

void divide_by_all(Context& context, const Tensor& all, const Tensor& of, const Tensor& loss) {
  on(all, [&]<typename T>() {
    parallel_for(context, 1, DivideByAll<T>{all.data<T>(), of.data<T>(), loss.data<T>()});
  });
}

void next_pass(Context& context, uint64_t* pass) { parallel_for(context, 1, NextPass{pass}); }

}  // namespace crema
