// The devices that can hold a tensor.
#pragma once

#include <cstdint>
#include <string>

namespace crema {

enum class Device : uint8_t { cpu, gpu };

inline const char* name_of(Device device) { return device == Device::cpu ? "CPU" : "GPU"; }

// How many candidates for one computation are timed on a GPU before the fastest is chosen: one,
// some, or all known ones.
enum class TuneMode : uint8_t { off, quick, full };

// Number of usable GPUs: 0 in a build without CUDA, without a driver, or without a GPU.
int gpu_count();
// Why gpu_count() is 0 and what to do: "this machine has no NVIDIA driver ..."; otherwise "".
std::string gpu_problem();
// For functions that are only compiled for GPUs (see device/parallel.h).
[[noreturn]] void fail_on_cpu();

}  // namespace crema
