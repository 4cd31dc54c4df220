#include "device/gpu_libraries.h"

#include <cublasLt.h>
#include <cublas_v2.h>
#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <mutex>
#include <string>

#include "base/error.h"
#include "base/strings.h"
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

// Programs are linked with DT_RPATH, which the loader searches before LD_LIBRARY_PATH (the reason
// is in tools/CMakeLists.txt). So that users can choose another library, look there first. NVIDIA's
// libraries find their parts next to themselves, because they have a RUNPATH. A library that the
// process has already, such as PyTorch's, is not loaded a second time.
void* open_gpu_library(const std::string& library) {
  if (void* const loaded = dlopen(library.c_str(), RTLD_NOW | RTLD_NOLOAD)) return loaded;
  if (const char* const folders = secure_getenv("LD_LIBRARY_PATH")) {
    for (const std::string& folder : split(folders, ':')) {
      if (folder.empty()) continue;  // the working directory
      if (void* const found = dlopen(cat(folder, "/", library).c_str(), RTLD_NOW)) return found;
    }
  }
  return dlopen(library.c_str(), RTLD_NOW);
}

std::string path_of(void* library) {
  const link_map* map = nullptr;
  return dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 ? map->l_name : "this one";
}

}  // namespace

void load_gpu_library(const char* stem, int version, std::span<const GpuFunction> functions,
                      const char* who) {
  const std::string library = cat(stem, ".", version);
  void* const handle = open_gpu_library(library);
  if (!handle) {
    fail(who, " needs ", library, ", which cannot be loaded: ", dlerror(),
         "; install CUDA's libraries", has_cudnn() ? " and cuDNN" : "",
         ", or name their folder in LD_LIBRARY_PATH");
  }
  for (const GpuFunction& function : functions) {
    *function.at = dlsym(handle, function.name);
    if (!*function.at)
      fail(who, " needs another version of ", library, ": ", path_of(handle), " has no ",
           function.name);
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
