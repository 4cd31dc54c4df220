#include "kernels/pointwise/dropout.h"

#include "kernels/pointwise/random_values.h"

namespace crema {
namespace {

struct Drop {
  uint32_t threshold;
  float factor;
  DropoutValues values;
  CREMA_HD Random::Four draw(const PassRandom& random, int64_t index) const {
    return threshold > 0 ? random.get().four(index) : Random::Four{};
  }
  template <typename T>
  CREMA_HD T operator()(uint32_t word, T value) const {
    return word < threshold ? static_cast<T>(values.dropped)
                            : value * static_cast<T>(factor) + static_cast<T>(values.shift);
  }
};

}  // namespace

void dropout(Context& context, const DropoutMask& mask, const Tensor& x, const Tensor& y,
             const DropoutValues& values) {
  change_randomly(context, mask.random, mask.samples, Drop{mask.threshold, mask.factor, values}, x,
                  y);
}

}  // namespace crema
