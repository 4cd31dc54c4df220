#include "kernels/gemm/gemm_groups.h"

#include <type_traits>

#include "base/error.h"
#include "kernels/gemm/gemm_kernels.h"

namespace crema {
namespace {

// One product after another.
template <typename T>
Refusal gemm_groups_plain(Context& context, const Gemm& g, const GemmGroups& groups, const T* a,
                          const T* b, T* c, const Tensor& /*scratch*/) {
  for (int64_t i = 0; i < groups.count; ++i)
    gemm_kernels<T>.run(context, g, a + i * groups.group_stride_a, b + i * groups.group_stride_b,
                        c + i * groups.group_stride_c);
  return nullptr;
}

REGISTER_KERNEL((gemm_groups_kernels<float, float>), "plain", RunsOn::both, 0,
                gemm_groups_plain<float>);
REGISTER_KERNEL((gemm_groups_kernels<double, double>), "plain", RunsOn::both, 0,
                gemm_groups_plain<double>);

}  // namespace

template <typename T, typename C>
void gemm_groups(Context& context, const Gemm& asked, const GemmGroups& groups, const T* a,
                 const T* b, C* c, const Tensor& scratch) {
  require(context.device() == Device::gpu || std::is_same_v<T, Compute<T>>,
          "a product of 16-bit numbers on a CPU, which computes in float and double only");
  const Gemm g = with_leading_dimensions(asked);
  if (g.m > 0 && g.n > 0 && g.batch > 0)
    gemm_groups_kernels<T, C>.run(context, g, groups, a, b, c, scratch);
}

#define CREMA_GEMM_GROUPS(T, C)                                                                 \
  template void gemm_groups<T, C>(Context&, const Gemm&, const GemmGroups&, const T*, const T*, \
                                  C*, const Tensor&);
CREMA_GEMM_GROUPS(float, float)
CREMA_GEMM_GROUPS(double, double)
CREMA_GEMM_GROUPS(Half, Half)
CREMA_GEMM_GROUPS(Half, float)
CREMA_GEMM_GROUPS(BFloat16, BFloat16)
CREMA_GEMM_GROUPS(BFloat16, float)
#undef CREMA_GEMM_GROUPS

}  // namespace crema
