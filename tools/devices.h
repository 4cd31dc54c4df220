// Selects the device for a verb, from -gpu, the solver's solver_mode and the machine.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "device/context.h"
#include "tensor/precision.h"
#include "tools/console/program_log.h"
#include "tools/flags/flags_of.h"

namespace crema {

// "0", "0,1" or "all" as GPU numbers; Error when the machine or the build has no such GPU.
std::vector<int> gpus_of(const std::string& flag);

// The context for -gpu: that GPU, or the CPU if it is empty. A file that requests a GPU (`wanted` is
// its number; -1: it does not) gets it if there is one, and otherwise the CPU with one warning.
using DeviceFlags = FlagsOf<"gpu", "implementation", "gpu_memory", "tune", "deterministic", "off">;
std::unique_ptr<Context> make_context(ProgramLog& log, const DeviceFlags& flags, int wanted = -1);

// Logs what computes, how much memory it may take and in which precision: "Using GPU 0: NVIDIA H200
// (memory 80 %, cuDNN 9.19, tf32)", with "no cuDNN" in a build without it, or "Using CPU: 2 threads
// (fp32)". It follows Caffe's own line,
// which every verb words in another way.
void log_device(ProgramLog& log, const DeviceFlags& flags, const Context& context,
                Precision precision);

// GPU memory of this process, as the driver counts it.
struct ProcessMemory {
  size_t all = 0;        // 0: unknown, or on a CPU
  size_t libraries = 0;  // of that, what is not the context's own: CUDA's context, its libraries,
                         // the kernels that are loaded, and CUDA graphs
};
ProcessMemory process_memory(const Context& context);
// Logs it, if it is known, after a net has run: kernels are loaded with their first use.
void log_process_memory(ProgramLog& log, const Context& context);

// The driver's name for a GPU.
std::string gpu_name(int ordinal);

}  // namespace crema
