// Selects the device for a verb, from -gpu, the solver's solver_mode and the machine.
#pragma once

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

// The driver's name for a GPU.
std::string gpu_name(int ordinal);

}  // namespace crema
