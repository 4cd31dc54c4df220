// gemm by oneDNN's sgemm.
#include <dnnl.h>

#include <algorithm>
#include <cstdint>

#include "base/error.h"
#include "base/system.h"
#include "kernels/gemm/gemm_kernels.h"

namespace crema {
namespace {

Refusal gemm_onednn(Context&, const Gemm& g, const float* a, const float* b, float* c) {
#ifndef __x86_64__
  return "oneDNN's sgemm is its reference on this processor";
#endif
  if (g.k == 0) return "nothing to add up";
  if (!may_generate_code()) return "no code may be generated here";
  // The first product generates the code of all.
  static const bool has_room = has_room_for_code(kCodeOfProducts);
  if (!has_room) return "no memory for generated code";
  // oneDNN uses 32-bit sizes for the parts that it splits matrices into.
  if (std::max({g.m, g.n, g.k, g.lda, g.ldb, g.ldc}) > INT32_MAX) return "sizes beyond 32 bits";
  for (int64_t i = 0; i < g.batch; ++i) {
    const dnnl_status_t status =
        dnnl_sgemm(g.transpose_a ? 'T' : 'N', g.transpose_b ? 'T' : 'N', g.m, g.n, g.k, g.alpha,
                   a + i * g.batch_stride_a, g.lda, b + i * g.batch_stride_b, g.ldb, g.beta,
                   c + i * g.batch_stride_c, g.ldc);
    require(status == dnnl_success, "oneDNN's sgemm failed with status ", static_cast<int>(status),
            " for ", g.m, "x", g.k, " times ", g.k, "x", g.n);
  }
  return nullptr;
}

REGISTER_KERNEL(gemm_kernels<float>, "onednn", RunsOn::cpu, 10, gemm_onednn);

}  // namespace

}  // namespace crema
