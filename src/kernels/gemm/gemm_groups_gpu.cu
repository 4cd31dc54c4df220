// gemm_groups() by cuBLAS.
#include <initializer_list>
#include <type_traits>

#include "device/parallel.h"
#include "kernels/gemm/gemm_cublas.h"
#include "kernels/gemm/gemm_kernels.h"

namespace crema {
namespace {

// Computes the addresses of each product's operands.
template <typename T, typename C>
struct GroupPointers {
  Gemm g;
  GemmGroups groups;
  const T *a, *b;
  C* c;
  const T **all_a, **all_b;
  C** all_c;
  CREMA_HD void operator()(int64_t i) const {
    const int64_t batch = i / groups.count, group = i % groups.count;
    all_a[i] = a + batch * g.batch_stride_a + group * groups.group_stride_a;
    all_b[i] = b + batch * g.batch_stride_b + group * groups.group_stride_b;
    all_c[i] = c + batch * g.batch_stride_c + group * groups.group_stride_c;
  }
};

// cuBLAS cannot inspect pointers in an array on the GPU and assumes that they are aligned like
// this.
template <typename T>
bool all_aligned(const T* start, std::initializer_list<int64_t> pitches) {
  bool all = reinterpret_cast<uintptr_t>(start) % 16 == 0;
  for (const int64_t pitch : pitches) all = all && pitch * sizeof(T) % 16 == 0;
  return all;
}

template <typename T, typename C>
Refusal gemm_groups_cublas(Context& context, const Gemm& g, const GemmGroups& groups, const T* a,
                           const T* b, C* c, const Tensor& scratch) {
  if (std::is_same_v<T, Compute<T>> && g.k == 0) return "nothing to add up";
  if (groups.count == 1 || !all_aligned(a, {g.lda, g.batch_stride_a, groups.group_stride_a}) ||
      !all_aligned(b, {g.ldb, g.batch_stride_b, groups.group_stride_b}) ||
      !all_aligned(c, {g.ldc, g.batch_stride_c, groups.group_stride_c})) {
    for (int64_t i = 0; i < groups.count; ++i)
      gemm_cublas(context, g, a + i * groups.group_stride_a, b + i * groups.group_stride_b,
                  c + i * groups.group_stride_c);
    return nullptr;
  }
  const int64_t count = g.batch * groups.count;
  const T** const all_a = static_cast<const T**>(scratch.raw());
  const T** const all_b = all_a + count;
  C** const all_c = static_cast<C**>(scratch.raw()) + 2 * count;
  parallel_for(context, count, GroupPointers<T, C>{g, groups, a, b, c, all_a, all_b, all_c});
  gemm_pointers_cublas(context, g, count, all_a, all_b, all_c);
  return nullptr;
}

#define CREMA_GEMM_GROUPS(T, C)                                           \
  REGISTER_KERNEL((gemm_groups_kernels<T, C>), "cublas", RunsOn::gpu, 10, \
                  (gemm_groups_cublas<T, C>));
CREMA_GEMM_GROUPS(float, float)
CREMA_GEMM_GROUPS(double, double)
CREMA_GEMM_GROUPS(Half, Half)
CREMA_GEMM_GROUPS(Half, float)
CREMA_GEMM_GROUPS(BFloat16, BFloat16)
CREMA_GEMM_GROUPS(BFloat16, float)
#undef CREMA_GEMM_GROUPS

}  // namespace
}  // namespace crema
