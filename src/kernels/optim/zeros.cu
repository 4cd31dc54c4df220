#include "kernels/optim/zeros.h"

#include "device/parallel.h"
#include "tensor/on.h"

namespace crema {
namespace {

template <typename M, typename T>
struct KeepZeros {
  const M* mask;
  T* values;
  CREMA_HD void operator()(int64_t i) const {
    if (mask[i] == M(0)) values[i] = Compute<T>(0);
  }
};

}  // namespace

void keep_zeros(Context& context, const Tensor& mask, const Tensor& values) {
  on_real(values, [&]<typename T>() {
    using M = Compute<T>;
    parallel_for(context, values.elements(), KeepZeros<M, T>{mask.data<M>(), values.data<T>()});
  });
}

}  // namespace crema
