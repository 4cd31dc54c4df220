#include "device/gpu_libraries.h"

#include <cublasLt.h>
#include <cublas_v2.h>
#include <dlfcn.h>

#include <mutex>
#include <string>

#include "base/error.h"
#include "device/cudnn.h"

#define CREMA_CUBLAS(F)            \
  F(cublasCreate_v2)               \
  F(cublasDestroy_v2)              \
  F(cublasGemmBatchedEx_64)        \
  F(cublasGemmStridedBatchedEx_64) \
  F(cublasGetStatusString)         \
  F(cublasSetStream_v2)            \
  F(cublasSetWorkspace_v2)
#define CREMA_CUBLAS_LT(F)                \
  F(cublasLtCreate)                       \
  F(cublasLtDestroy)                      \
  F(cublasLtMatmul)                       \
  F(cublasLtMatmulAlgoCheck)              \
  F(cublasLtMatmulAlgoGetHeuristic)       \
  F(cublasLtMatmulDescCreate)             \
  F(cublasLtMatmulDescDestroy)            \
  F(cublasLtMatmulDescSetAttribute)       \
  F(cublasLtMatmulPreferenceCreate)       \
  F(cublasLtMatmulPreferenceDestroy)      \
  F(cublasLtMatmulPreferenceSetAttribute) \
  F(cublasLtMatrixLayoutCreate)           \
  F(cublasLtMatrixLayoutDestroy)
CREMA_CUBLAS(CREMA_JUMP)
CREMA_CUBLAS_LT(CREMA_JUMP)

namespace crema {

namespace {

constexpr GpuFunction kCublas[] = {CREMA_CUBLAS(CREMA_FUNCTION)};
constexpr GpuFunction kCublasLt[] = {CREMA_CUBLAS_LT(CREMA_FUNCTION)};

}  // namespace

void load_gpu_library(const char* stem, int version, std::span<const GpuFunction> functions,
                      const char* who) {
  const std::string library = cat(stem, ".", version);
  void* const handle = dlopen(library.c_str(), RTLD_NOW);
  if (!handle) {
    fail(who, " needs ", library, ", which cannot be loaded: ", dlerror(),
         "; install CUDA's libraries", has_cudnn() ? " and cuDNN" : "",
         ", or name their folder in LD_LIBRARY_PATH");
  }
  for (const GpuFunction& function : functions) {
    *function.at = dlsym(handle, function.name);
    if (!*function.at)
      fail(who, " needs another version of ", library, ": this one has no ", function.name);
  }
}

void load_cublas() {
  static std::once_flag once;
  std::call_once(once, [] {
    load_gpu_library("libcublasLt.so", CUBLAS_VER_MAJOR, kCublasLt);
    load_gpu_library("libcublas.so", CUBLAS_VER_MAJOR, kCublas);
  });
}

}  // namespace crema
