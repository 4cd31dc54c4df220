// The devices a tensor can live on.
#pragma once

#include <cstdint>

namespace crema {

enum class Device : uint8_t { cpu, gpu };

inline const char* name_of(Device device) { return device == Device::cpu ? "CPU" : "GPU"; }

// Number of usable GPUs: 0 in a build without CUDA, without a driver, or without a card.
int gpu_count();

}  // namespace crema
