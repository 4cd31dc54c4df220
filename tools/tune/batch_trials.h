// Tries other batch sizes: whether a run fits into memory, and how fast it is.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/context.h"
#include "net/plan/memory_use.h"
#include "net/prototxt/prototxt.h"
#include "tools/console/program_log.h"
#include "tools/flags/flags_of.h"

namespace crema {

struct BatchTrial {
  int64_t batch = 0;
  bool fits = false;
  std::string problem;  // why it does not
  double seconds = 0;   // an iteration, 0: not timed
  double waited = 0;    // of them for data
  int64_t samples = 0;  // in an iteration, of all its batches
  MemoryKinds memory;
  double speed() const { return seconds > 0 ? static_cast<double>(samples) / seconds : 0; }
};

using BatchTrialFlags = FlagsOf<"model", "assume", "batch", "level", "stage", "off", "recompute",
                                "precision", "iterations">;

class BatchTrials {
 public:
  // `file`: the solver, without tests and snapshots; `flags.assume` applies.
  BatchTrials(ProgramLog& log, Context& context, const BatchTrialFlags& flags,
              const SolverFile& file);

  // The batch that the net has, and the settings that change it, "layer[data].data_param.batch_size";
  // a source that no setting of one number changes is only named.
  int64_t own_batch() const { return own_; }
  const std::vector<std::string>& settings() const { return settings_; }
  const std::vector<std::string>& others() const { return others_; }

  // Trains a few iterations; to time them, for about half a second more, or -iterations. Batch 0:
  // the net's own batch; then an Error is thrown, not reported.
  BatchTrial run(int64_t batch, bool timed);
  // Bytes that a net may take.
  size_t available() const { return available_; }

 private:
  void find_sources();
  void run_iterations(int64_t batch, bool timed, BatchTrial* trial);

  ProgramLog& log_;
  Context& context_;
  const BatchTrialFlags flags_;
  const SolverFile& file_;
  size_t available_ = 0;
  int64_t own_ = 1;
  std::vector<std::string> settings_, others_;
};

// The batches to time: powers of two from an eighth of `own` to `most`, and `own`.
std::vector<int64_t> batches_to_time(int64_t own, int64_t most);

}  // namespace crema
