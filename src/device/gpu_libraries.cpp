#include "device/gpu_libraries.h"

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <dlfcn.h>

#include <mutex>
#include <string>

#include "base/error.h"

// Every function of these libraries that our code or cudnn-frontend calls; the linker names any
// that is missing here. Each name is defined as a jump through a pointer that load_gpu_libraries()
// sets, so neither callers nor argument types matter. The symbols are hidden, so that no other
// library in the process binds to them.
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
#define CREMA_CUDNN(F)             \
  F(cudnnBackendCreateDescriptor)  \
  F(cudnnBackendDestroyDescriptor) \
  F(cudnnBackendExecute)           \
  F(cudnnBackendFinalize)          \
  F(cudnnBackendGetAttribute)      \
  F(cudnnBackendSetAttribute)      \
  F(cudnnCreate)                   \
  F(cudnnDestroy)                  \
  F(cudnnGetErrorString)           \
  F(cudnnGetLastErrorString)       \
  F(cudnnGetStream)                \
  F(cudnnGetVersion)               \
  F(cudnnSetStream)
#define CREMA_NVRTC(F)   \
  F(nvrtcCompileProgram) \
  F(nvrtcCreateProgram)  \
  F(nvrtcDestroyProgram) \
  F(nvrtcGetCUBIN)       \
  F(nvrtcGetCUBINSize)   \
  F(nvrtcGetProgramLog)  \
  F(nvrtcGetProgramLogSize)

#ifndef __x86_64__
#error "the jump to a function of another library is written for x86-64 only"
#endif
#define CREMA_JUMP(name)                                          \
  extern "C" [[gnu::visibility("hidden")]] void* crema_at_##name; \
  void* crema_at_##name = nullptr;                                \
  asm(".pushsection .text\n"                                      \
      ".globl " #name                                             \
      "\n"                                                        \
      ".hidden " #name                                            \
      "\n"                                                        \
      ".type " #name ", @function\n" #name                        \
      ":\n"                                                       \
      "  jmp *crema_at_" #name                                    \
      "(%rip)\n"                                                  \
      ".popsection\n");
CREMA_CUBLAS(CREMA_JUMP)
CREMA_CUBLAS_LT(CREMA_JUMP)
CREMA_CUDNN(CREMA_JUMP)
CREMA_NVRTC(CREMA_JUMP)

namespace crema {

namespace {

struct Function {
  const char* name;
  void** at;
};

#define CREMA_FUNCTION(name) {#name, &crema_at_##name},
constexpr Function kCublas[] = {CREMA_CUBLAS(CREMA_FUNCTION)};
constexpr Function kCublasLt[] = {CREMA_CUBLAS_LT(CREMA_FUNCTION)};
constexpr Function kCudnn[] = {CREMA_CUDNN(CREMA_FUNCTION)};
constexpr Function kNvrtc[] = {CREMA_NVRTC(CREMA_FUNCTION)};

// "libcudnn.so", 9: the version that this was compiled for.
template <size_t count>
void load(const char* stem, int version, const Function (&functions)[count]) {
  const std::string library = cat(stem, ".", version);
  void* const handle = dlopen(library.c_str(), RTLD_NOW);
  if (!handle) {
    fail("a GPU needs ", library, ", which cannot be loaded: ", dlerror(),
         "; install CUDA's libraries and cuDNN, or name their folder in LD_LIBRARY_PATH");
  }
  for (const Function& function : functions) {
    *function.at = dlsym(handle, function.name);
    if (!*function.at)
      fail("a GPU needs another version of ", library, ": this one has no ", function.name);
  }
}

}  // namespace

void load_gpu_libraries() {
  static std::once_flag once;
  std::call_once(once, [] {
    load("libcublasLt.so", CUBLAS_VER_MAJOR, kCublasLt);
    load("libcublas.so", CUBLAS_VER_MAJOR, kCublas);
    load("libnvrtc.so", CUDART_VERSION / 1000, kNvrtc);  // loaded before cuDNN, which needs it too
    load("libcudnn.so", CUDNN_MAJOR, kCudnn);
  });
}

int cudnn_version() {
  load_gpu_libraries();
  return static_cast<int>(cudnnGetVersion());
}

}  // namespace crema
