#include "tools/measure/driver_memory.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdint>
#include <vector>

namespace crema {
namespace {

// From NVML's header, which CUDA's packages for Python do not have. These never change: each new
// version of a function has a new name.
using NvmlDevice = void*;
constexpr int kSuccess = 0, kTooSmall = 7;
constexpr uint64_t kNotAvailable = ~uint64_t{0};

struct NvmlProcess {
  unsigned pid;
  unsigned long long bytes;
  unsigned gpu_instance, compute_instance;
};

struct NvmlMemory {
  unsigned version = sizeof(NvmlMemory) | 2u << 24;
  unsigned long long total = 0, reserved = 0, free = 0, used = 0;
};

class Nvml {
 public:
  explicit Nvml(const char* library) : handle_(dlopen(library, RTLD_NOW)) {
    find(start_, "nvmlInit_v2");
    find(stop_, "nvmlShutdown");
    find(device_, "nvmlDeviceGetHandleByPciBusId_v2");
    find(processes_, "nvmlDeviceGetComputeRunningProcesses_v3");
    find(memory_, "nvmlDeviceGetMemoryInfo_v2");
    works_ = start_ && stop_ && device_ && start_() == kSuccess;
  }
  ~Nvml() {
    if (works_) stop_();
    if (handle_) dlclose(handle_);
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  DriverMemory memory_of(const std::string& bus_id) const {
    NvmlDevice device = nullptr;
    if (!works_ || device_(bus_id.c_str(), &device) != kSuccess) return {};
    const std::vector<NvmlProcess> processes = processes_on(device);
    const auto own = static_cast<unsigned>(getpid());
    for (const NvmlProcess& process : processes) {
      if (process.pid == own && process.bytes != kNotAvailable) return {process.bytes, true};
    }
    NvmlMemory memory;
    // With several processes it is unknown which part is whose.
    if (processes.size() > 1 || !memory_ || memory_(device, &memory) != kSuccess) return {};
    return {memory.used, false};
  }

 private:
  template <typename Function>
  void find(Function& function, const char* name) const {
    if (handle_) function = reinterpret_cast<Function>(dlsym(handle_, name));
  }

  std::vector<NvmlProcess> processes_on(NvmlDevice device) const {
    std::vector<NvmlProcess> processes(16);
    int status = processes_ ? kTooSmall : kSuccess + 1;
    while (status == kTooSmall) {
      processes.resize(2 * processes.size());
      auto count = static_cast<unsigned>(processes.size());
      status = processes_(device, &count, processes.data());
      if (status == kSuccess) processes.resize(count);
    }
    if (status != kSuccess) processes.clear();
    return processes;
  }

  void* const handle_;
  bool works_ = false;
  int (*start_)() = nullptr;
  int (*stop_)() = nullptr;
  int (*device_)(const char* bus_id, NvmlDevice*) = nullptr;
  int (*processes_)(NvmlDevice, unsigned* count, NvmlProcess*) = nullptr;
  int (*memory_)(NvmlDevice, NvmlMemory*) = nullptr;
};

}  // namespace

DriverMemory driver_memory(const std::string& bus_id, const char* library) {
  return Nvml(library).memory_of(bus_id);
}

}  // namespace crema
