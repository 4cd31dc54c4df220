#include "device/device_scope.h"

#include <algorithm>
#include <cstdlib>

#include "device/device.h"
#include "device/host_limits.h"
#ifdef _OPENMP
#include <omp.h>
#endif
#ifdef CREMA_CUDA
#include <cuda_runtime_api.h>

#include "device/gpu.h"
#endif

namespace crema {

#ifdef CREMA_CUDA
DeviceScope::DeviceScope(int gpu) {
  int current = -1;
  if (gpu < 0 || gpu >= gpu_count() || cudaGetDevice(&current) != cudaSuccess || current == gpu)
    return;
  if (cudaSetDevice(gpu) == cudaSuccess) before_ = current;
}
DeviceScope::~DeviceScope() {
  if (before_ >= 0) cudaSetDevice(before_);
}
void wait_for_gpu() { check_cuda(cudaDeviceSynchronize(), "waiting for the GPU"); }
#else
DeviceScope::DeviceScope(int) {}
DeviceScope::~DeviceScope() = default;
void wait_for_gpu() {}
#endif

void limit_threads() {
#ifdef _OPENMP
  const int most = omp_get_max_threads();
  set_cpu_threads(std::getenv("OMP_NUM_THREADS") ? most : std::min(most, usable_processors()));
#endif
}

void set_cpu_threads([[maybe_unused]] int threads) {
#ifdef _OPENMP
  // Threads of oneDNN wait for as many as they asked for, for ever if OpenMP starts fewer.
  omp_set_dynamic(0);
  omp_set_num_threads(std::min(threads, omp_get_thread_limit()));
#endif
}

int cpu_threads() {
#ifdef _OPENMP
  return omp_get_max_threads();
#else
  return 1;
#endif
}

}  // namespace crema
