// NCCL: sums over GPUs, one rank each, queued on their streams. A CUDA graph can record it. A GPU
// build without nccl.h, and one without CUDA, compile nccl_absent.cpp instead of nccl_engine.cpp.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/engine.h"

namespace crema {

struct NcclOptions {
  int rank = 0, ranks = 1;
  double timeout = 60;  // seconds, in which the ranks' GPUs must connect
  // Gives each rank the texts of all, by rank (Control::gather).
  std::function<std::vector<std::string>(const std::string& text)> gather;
  // Throws once a rank is lost (Control::check); called while the GPUs connect.
  std::function<void()> check;
};

// Loads the library with the first call. Error when the build or the machine has no NCCL, or two
// ranks share one GPU, which NCCL refuses; RankLost when they do not all connect in time. CUDA graphs
// that have recorded its calls are destroyed before it; launched after abort(), they end at once.
std::unique_ptr<Engine> make_nccl_engine(Context& context, const NcclOptions& options);

// Whether this build has NCCL.
bool has_nccl();

}  // namespace crema
