#include "kernels/gemm/gemm.h"

#include <type_traits>

#include "kernels/core/implementation.h"
#include "kernels/gemm/gemm_bodies.h"

namespace crema {

namespace {

#ifdef CREMA_CUDA
template <typename T>
bool on_cublas(Context& context, const Gemm& g, const T* a, const T* b, T* c) {
  if (context.device() == Device::cpu || g.k == 0) return false;  // libraries reject k = 0
  gemm_cublas(context, g, a, b, c);
  return true;
}
#endif

template <typename T>
bool few_rows(Context& context, const Gemm& g, const T* a, const T* b, T* c) {
  if (context.device() == Device::gpu || !suits_few_rows(g)) return false;
  gemm_few_rows(g, a, b, c);
  return true;
}

#ifdef CREMA_ONEDNN
template <typename T>
bool on_onednn(Context& context, const Gemm& g, const T* a, const T* b, T* c) {
  if constexpr (std::is_same_v<T, float>) {
    return context.device() == Device::cpu && g.k > 0 && gemm_onednn(g, a, b, c);
  }
  return false;
}
#endif

template <typename T>
bool plain(Context& context, const Gemm& g, const T* a, const T* b, T* c) {
  if (context.device() == Device::gpu) {
    gemm_elements(context, g, a, b, c);
  } else {
    gemm_reference(g, a, b, c);
  }
  return true;
}

template <typename T>
constexpr KernelFunction<const Gemm&, const T*, const T*, T*> kGemm[] = {
#ifdef CREMA_CUDA
    {"cublas", on_cublas<T>},
#endif
    {"few_rows", few_rows<T>},
#ifdef CREMA_ONEDNN
    {"onednn", on_onednn<T>},
#endif
    {"plain", plain<T>},
};

}  // namespace

template <typename T>
void gemm(Context& context, const Gemm& asked, const T* a, const T* b, T* c) {
  const Gemm g = with_leading_dimensions(asked);
  if (g.m > 0 && g.n > 0 && g.batch > 0)
    run_first(context, "the matrix product", kGemm<T>, g, a, b, c);
}

template void gemm<float>(Context&, const Gemm&, const float*, const float*, float*);
template void gemm<double>(Context&, const Gemm&, const double*, const double*, double*);

}  // namespace crema
