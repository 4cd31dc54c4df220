#include "kernels/add.h"

#include "device/parallel.h"
#include "kernels/pack.h"
#include "tensor/on.h"

namespace crema {
namespace {

template <typename X, typename Y>
struct Add {
  const X* x;
  Y* y;
  CREMA_HD void operator()(int64_t i) const { y[i] = Compute<Y>(y[i]) + Compute<X>(x[i]); }
};

template <typename T>
struct AddPacks {
  const WidePack<T>* x;
  WidePack<T>* y;
  CREMA_HD void operator()(int64_t i) const {
    WidePack<T> sum = y[i];
    const WidePack<T> more = x[i];
    for (int k = 0; k < kPackCount<T>; ++k) sum.v[k] = Compute<T>(sum.v[k]) + Compute<T>(more.v[k]);
    y[i] = sum;
  }
};

}  // namespace

void add_to(Context& context, const Tensor& x, const Tensor& y) {
  const int64_t count = y.elements();
  on_real(x, [&]<typename X>() {
    if (x.dtype() != y.dtype()) {  // 16 bits into the float32 of a parameter's gradient
      return parallel_for(context, count, Add<X, float>{x.data<X>(), y.data<float>()});
    }
    if (context.device() == Device::gpu && takes_packs<X>(count, x.raw(), y.raw())) {
      using P = WidePack<X>;
      return parallel_for(context, count / kPackCount<X>, AddPacks<X>{x.data<P>(), y.data<P>()});
    }
    parallel_for(context, count, Add<X, X>{x.data<X>(), y.data<X>()}, 16384);
  });
}

}  // namespace crema
