// Sums of values in a GPU's memory by an engine for host memory: they are copied to it and back.
// For ranks that NCCL cannot connect, such as several on one GPU.
#pragma once

#include <memory>

#include "comm/engine.h"

namespace crema {

std::unique_ptr<Engine> stage_on_host(std::unique_ptr<Engine> host, int rank, int ranks);

}  // namespace crema
