#include "kernels/optim/zeros.h"

#include "device/parallel.h"
#include "tensor/on.h"

namespace crema {
namespace {

template <typename T>
struct MakeMask {
  const T* values;
  uint8_t* mask;
  CREMA_HD void operator()(int64_t i) const { mask[i] = Compute<T>(values[i]) != 0 ? 1 : 0; }
};

struct FillMask {
  uint8_t* mask;
  CREMA_HD void operator()(int64_t i) const { mask[i] = 1; }
};

template <typename T>
struct KeepZeros {
  const uint8_t* mask;
  T* values;
  CREMA_HD void operator()(int64_t i) const {
    if (mask[i] == 0) values[i] = Compute<T>(0);
  }
};

}  // namespace

void make_mask(Context& context, const Tensor& values, const Tensor& mask) {
  if (!values) return parallel_for(context, mask.elements(), FillMask{mask.data<uint8_t>()});
  on_real(values, [&]<typename T>() {
    parallel_for(context, values.elements(), MakeMask<T>{values.data<T>(), mask.data<uint8_t>()});
  });
}

void keep_zeros(Context& context, const Tensor& mask, const Tensor& values) {
  on_real(values, [&]<typename T>() {
    parallel_for(context, values.elements(), KeepZeros<T>{mask.data<uint8_t>(), values.data<T>()});
  });
}

}  // namespace crema
