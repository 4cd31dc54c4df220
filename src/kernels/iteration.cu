#include "kernels/iteration.h"

#include <algorithm>

#include "device/parallel.h"
#include "tensor/on.h"

namespace crema {
namespace {

template <typename T>
struct NoteLoss {
  const T* value;
  int64_t count;
  double weight, share;
  bool add;
  const UpdateNumbers* numbers;
  float* losses;
  int64_t size;
  T* seed;
  CREMA_HD void operator()(int64_t i) const {
    if (seed) seed[i] = static_cast<T>(weight * numbers->loss_scale);
    if (i > 0) return;
    double sum = 0;
    for (int64_t k = 0; k < count; ++k) sum += value[k];
    float& goal = losses[numbers->updates % size];
    goal = static_cast<float>((add ? goal : 0) + share * sum);
  }
};

struct NextPass {
  uint64_t* pass;
  CREMA_HD void operator()(int64_t) const { ++*pass; }
};

}  // namespace

void note_loss(Context& context, const Tensor& value, double weight, double share, bool add,
               const UpdateNumbers* numbers, const Tensor& losses, const Tensor& seed) {
  on(value, [&]<typename T>() {
    parallel_for(context, std::max<int64_t>(1, seed ? seed.count() : 1),
                 NoteLoss<T>{value.data<T>(), value.count(), weight, share, add, numbers,
                             losses.data<float>(), losses.count(), seed.data<T>()});
  });
}

void next_pass(Context& context, uint64_t* pass) { parallel_for(context, 1, NextPass{pass}); }

}  // namespace crema
