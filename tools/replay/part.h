// Where two runs part: the first iteration, and what in it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/console/program_log.h"
#include "tools/replay/replay.h"
#include "tools/replay/run_setting.h"

namespace crema {

// The first iteration at which two records differ; none: they are equal as far as both go.
std::optional<int64_t> first_difference(const RecordedIterations& a, const RecordedIterations& b);

// In the order in which they are computed: blobs forward, gradients backward, then updates. "": none.
std::string first_difference(const OpenedIteration& a, const OpenedIteration& b);

// What the second says differently: `base_lr was 0.01 and is 0.02`, `layer "drop" of the nets differs`.
std::vector<std::string> file_differences(const RecordedRun& a, const RecordedRun& b);

// What the starts of the second had that those of the first had not, besides their files: "threads is 1 (was
// 2)". None for runs without run.lock.
std::vector<std::string> start_differences(const RecordedRun& a, const RecordedRun& b);

struct Parting {
  int64_t iteration = 0;
  std::string what;  // `the blob "data" of layer "data" (Data)`
};

// Runs both from where they may start up to `last`, an iteration at which they differ. None: here they are equal up to
// it.
std::optional<Parting> find_parting(ProgramLog& log, const RunSetting& a, const RunSetting& b,
                                    int64_t last);

}  // namespace crema
