#include <cudnn.h>

#include <mutex>

#include "device/cudnn.h"
#include "device/gpu.h"
#include "device/gpu_libraries.h"

// Functions that our code and cudnn-frontend call (device/gpu_libraries.h); only the latter calls
// NVRTC.
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
CREMA_CUDNN(CREMA_JUMP)
CREMA_NVRTC(CREMA_JUMP)

namespace crema {

namespace {

constexpr GpuFunction kCudnn[] = {CREMA_CUDNN(CREMA_FUNCTION)};
constexpr GpuFunction kNvrtc[] = {CREMA_NVRTC(CREMA_FUNCTION)};

void load_cudnn() {
  static std::once_flag once;
  std::call_once(once, [] {
    load_cublas();                                                   // which cuDNN needs
    load_gpu_library("libnvrtc.so", CUDART_VERSION / 1000, kNvrtc);  // likewise
    load_gpu_library("libcudnn.so", CUDNN_MAJOR, kCudnn);
  });
}

void check_cudnn(cudnnStatus_t status, const char* what) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  check_cuda(cudaFree(nullptr), what);  // a lost device, which the library reports as another error
  fail(what, " failed: cuDNN says \"", cudnnGetErrorString(status), "\"");
}

}  // namespace

bool has_cudnn() { return true; }

int cudnn_version() {
  load_cudnn();
  return static_cast<int>(cudnnGetVersion());
}

cudnnContext* open_cudnn(CUstream_st* stream) {
  load_cudnn();
  cudnnHandle_t handle = nullptr;
  check_cudnn(cudnnCreate(&handle), "starting cuDNN");
  set_cudnn_stream(handle, stream);
  return handle;
}

void set_cudnn_stream(cudnnContext* handle, CUstream_st* stream) {
  check_cudnn(cudnnSetStream(handle, stream), "changing cuDNN's stream");
}

void close_cudnn(cudnnContext* handle) { cudnnDestroy(handle); }

}  // namespace crema
