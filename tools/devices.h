// Which device a verb runs on: what -gpu, the solver's solver_mode and the machine say.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/context.h"
#include "tools/program_log.h"

namespace crema {

// "0", "0,1" or "all" as GPU numbers; Error when the machine or the build has no such GPU.
std::vector<int> gpus_of(const std::string& flag);

// The context for -gpu: one GPU, or the CPU when the flag is empty. A file that asks for a GPU
// (`wanted` is its number; -1: it does not) gets it when there is one, and otherwise the CPU with
// one warning. Sets what flags say of the context.
std::unique_ptr<Context> make_context(ProgramLog& log, int wanted = -1);

// What the driver calls the card of a GPU context.
std::string gpu_name(int ordinal);

}  // namespace crema
