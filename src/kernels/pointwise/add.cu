#include "kernels/pointwise/add.h"

#include <algorithm>
#include <utility>

#include "device/parallel.h"
#include "kernels/core/pack.h"
#include "kernels/pointwise/pointwise.h"
#include "tensor/on.h"

namespace crema {
namespace {

constexpr int kAtOnce = 8;  // parts that one pass over y reads

template <typename X>
struct AddWidened {
  const X* x;
  float* y;
  CREMA_HD void operator()(int64_t i) const { y[i] += Compute<X>(x[i]); }
};

struct AddProduct {
  const float *a, *b;
  float* y;
  CREMA_HD void operator()(int64_t i) const { y[i] += a[i] * b[i]; }
};

template <typename T, int kCount>
struct Sum {
  const T* x[kCount];
  T* y;
  CREMA_HD void operator()(int64_t i) const {
    Compute<T> sum = x[0][i];
    for (int n = 1; n < kCount; ++n) sum += Compute<T>(x[n][i]);
    y[i] = sum;
  }
};

// The same for 16 bytes at a time, on the GPU: all loads are in flight together.
template <typename T, int kCount>
struct SumPacks {
  const WidePack<T>* x[kCount];
  WidePack<T>* y;
  CREMA_HD void operator()(int64_t i) const {
    WidePack<T> p[kCount];
    for (int n = 0; n < kCount; ++n) p[n] = x[n][i];
    for (int k = 0; k < kPackCount<T>; ++k) {
      Compute<T> sum = p[0].v[k];
      for (int n = 1; n < kCount; ++n) sum += Compute<T>(p[n].v[k]);
      p[0].v[k] = sum;
    }
    y[i] = p[0];
  }
};

template <template <typename, int> typename Body, typename T, int kCount, typename Element>
void run(Context& context, int64_t count, const Tensor* const* x, const Tensor& y) {
  Body<T, kCount> body;
  for (int n = 0; n < kCount; ++n) body.x[n] = x[n]->data<Element>();
  body.y = y.data<Element>();
  parallel_for(context, count, body, 16384);
}

// y = the sum of `count` tensors, 2 to kAtOnce.
void sum_at_once(Context& context, int count, const Tensor* const* x, const Tensor& y) {
  bool packs = context.device() == Device::gpu;
  on_real(y, [&]<typename T>() {
    const int64_t elements = y.elements();
    for (int n = 0; n < count; ++n) packs = packs && takes_packs<T>(elements, x[n]->raw(), y.raw());
    const auto run_with = [&]<int kCount>() {
      if (packs) {
        run<SumPacks, T, kCount, WidePack<T>>(context, elements / kPackCount<T>, x, y);
      } else {
        run<Sum, T, kCount, T>(context, elements, x, y);
      }
    };
    [&]<int... k>(std::integer_sequence<int, k...>) {
      ((count == k + 2 ? run_with.template operator()<k + 2>() : void()), ...);
    }
    (std::make_integer_sequence<int, kAtOnce - 1>{});
  });
}

struct SumThenRelu {
  Relu relu;
  template <typename T>
  CREMA_HD T operator()(T x, T y) const {
    const T sum = x + y;
    return relu.on && sum <= 0 ? sum * T(relu.slope) : sum;
  }
};

}  // namespace

void add_and_relu(Context& context, const Tensor& x, Relu relu, const Tensor& y) {
  pointwise(context, SumThenRelu{relu}, y, x, y);
}

void add_to(Context& context, const Tensor& x, const Tensor& y) {
  if (x.dtype() == y.dtype()) return add_up(context, {y, x}, y);
  on_real(x, [&]<typename X>() {
    parallel_for(context, y.elements(), AddWidened<X>{x.data<X>(), y.data<float>()});
  });
}

void add_product(Context& context, const Tensor& a, const Tensor& b, const Tensor& y) {
  parallel_for(context, y.count(), AddProduct{a.data<float>(), b.data<float>(), y.data<float>()});
}

void add_up(Context& context, const std::vector<Tensor>& parts, const Tensor& y) {
  if (parts.size() == 1 && parts[0].raw() != y.raw()) copy(context, parts[0], y);
  const Tensor* x[kAtOnce] = {&parts[0]};
  for (size_t next = 1; next < parts.size();) {
    int count = 1;
    while (count < kAtOnce && next < parts.size()) x[count++] = &parts[next++];
    sum_at_once(context, count, x, y);
    x[0] = &y;
  }
}

}  // namespace crema
