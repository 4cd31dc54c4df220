// GPU memory as NVIDIA's driver counts it, which is more than our own count: CUDA's context, the
// libraries and the kernels that are loaded take some, too.
#pragma once

#include <cstddef>
#include <string>

namespace crema {

struct DriverMemory {
  size_t bytes = 0;  // 0: unknown
  bool exact =
      false;  // of this process; else of all that use the GPU, as in most containers, where
              // the driver does not tell which process is which
};
// Asks the driver's library NVML. bus_id: of the GPU, as CUDA writes it.
DriverMemory driver_memory(const std::string& bus_id, const char* library = "libnvidia-ml.so.1");

}  // namespace crema
