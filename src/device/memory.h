// Raw memory on a device, and copies between devices.
#pragma once

#include <cstddef>
#include <memory>

#include "device/context.h"

namespace crema {

// Owns bytes on one device, aligned to 64 (CPU) or 256 (GPU), initially zero, and counted in the
// context's MemoryAccount.
class Buffer {
 public:
  // The Error says how much was requested and how much is free or allowed.
  Buffer(Context& context, size_t bytes);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  Device device() const { return device_; }

 private:
  Device device_;
  size_t bytes_;
  void* data_ = nullptr;
  std::shared_ptr<MemoryAccount> account_;
};

// Bytes that can still be allocated: the free memory of the GPU (on a CPU, where it is unknown, the
// largest size_t), or less if the context's memory is limited.
size_t free_memory(Context& context);
// Bytes of GPU memory; on a CPU, where it is unknown, the largest size_t.
size_t total_memory(Context& context);

// Copies on the context's stream. When either side is the CPU, the call returns after the copy.
void copy_bytes(Context& context, void* to, Device to_device, const void* from, Device from_device,
                size_t bytes);
void zero_bytes(Context& context, void* at, Device device, size_t bytes);

}  // namespace crema
