#include "kernels/gemm/gemm.h"

#include <type_traits>

#include "kernels/gemm/gemm_bodies.h"

namespace crema {

template <typename T>
void gemm(Context& context, const Gemm& asked, const T* a, const T* b, T* c) {
  const Gemm g = with_rows(asked);
  if (g.m <= 0 || g.n <= 0 || g.batch <= 0) return;
  [[maybe_unused]] const bool plain =
      context.implementation == "plain" || g.k == 0;  // libraries reject k = 0
  if (context.device() == Device::gpu) {
#ifdef CREMA_CUDA
    if (!plain) return gemm_cublas(context, g, a, b, c);
#endif
    return gemm_elements(context, g, a, b, c);
  }
  if (suits_few_rows(g)) return gemm_few_rows(g, a, b, c);
#ifdef CREMA_ONEDNN
  if constexpr (std::is_same_v<T, float>) {
    if (!plain && gemm_onednn(g, a, b, c)) return;
  }
#endif
  gemm_reference(g, a, b, c);
}

template void gemm<float>(Context&, const Gemm&, const float*, const float*, float*);
template void gemm<double>(Context&, const Gemm&, const double*, const double*, double*);

}  // namespace crema
