#include "device/stopwatch.h"

#include <chrono>
#include <thread>
#ifdef CREMA_CUDA
#include "device/gpu.h"
#endif

namespace crema {

using Clock = std::chrono::steady_clock;

struct Stopwatch::Moments {
  std::vector<Clock::time_point> cpu;
#ifdef CREMA_CUDA
  std::vector<cudaEvent_t> gpu;  // created once and reused
  size_t used = 0;
  ~Moments() {
    for (cudaEvent_t event : gpu) cudaEventDestroy(event);
  }
#endif
};

Stopwatch::Stopwatch(Context& context) : context_(context), moments_(std::make_unique<Moments>()) {}
Stopwatch::~Stopwatch() = default;

void Stopwatch::mark() {
#ifdef CREMA_CUDA
  if (context_.device() == Device::gpu) {
    Moments& m = *moments_;
    if (m.used == m.gpu.size()) {
      m.gpu.push_back(nullptr);
      check_cuda(cudaEventCreate(&m.gpu.back()), "timing");
    }
    check_cuda(cudaEventRecord(m.gpu[m.used++], context_.gpu().stream), "timing");
    return;
  }
#endif
  moments_->cpu.push_back(Clock::now());
}

void Stopwatch::hold(double milliseconds) {
#ifdef CREMA_CUDA
  if (context_.device() == Device::cpu) return;
  const auto rest = [](void* microseconds) {
    std::this_thread::sleep_for(
        std::chrono::microseconds(reinterpret_cast<intptr_t>(microseconds)));
  };
  const auto microseconds = static_cast<intptr_t>(1e3 * milliseconds);
  check_cuda(cudaLaunchHostFunc(context_.gpu().stream, rest, reinterpret_cast<void*>(microseconds)),
             "timing");
#else
  (void)milliseconds;
#endif
}

std::vector<double> Stopwatch::laps() {
  std::vector<double> laps;
  context_.synchronize();
#ifdef CREMA_CUDA
  for (size_t i = 1; i < moments_->used; ++i) {
    float milliseconds = 0;
    check_cuda(cudaEventElapsedTime(&milliseconds, moments_->gpu[i - 1], moments_->gpu[i]),
               "timing");
    laps.push_back(milliseconds);
  }
  moments_->used = 0;
#endif
  const std::vector<Clock::time_point>& cpu = moments_->cpu;
  for (size_t i = 1; i < cpu.size(); ++i)
    laps.push_back(std::chrono::duration<double, std::milli>(cpu[i] - cpu[i - 1]).count());
  moments_->cpu.clear();
  return laps;
}

}  // namespace crema
