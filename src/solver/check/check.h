// The checks before a training: what solver and nets say that is legal, but hardly meant, and what
// the data say to it. Nothing is allocated for it, and no net is made.
#pragma once

#include <string>
#include <vector>

#include "net/check/finding.h"
#include "net/plan/memory_use.h"
#include "net/prototxt/prototxt.h"

namespace crema {

struct CheckOptions {
  std::vector<std::string> weights;  // replace the solver's own; each may be a list with commas
  NetState state;                    // level and stages added to the training net's
  bool resumes = false;              // from a snapshot, which has its weights
  bool reads_data = true;            // compare the nets with their data
  bool reads_weights =
      true;  // compare the names of their layers; else the loader does, or none are there
};

// All findings, sorted by file and line. Error when a net cannot be read at all.
Findings check_training(const SolverFile& file, const CheckOptions& options);

// Checks the solver's fields alone, with epochs converted to iterations. sums_losses: the
// training net has a loss that is not normalised. compares_intervals: with max_iter.
void check_solver_fields(const SolverFile& file, bool sums_losses, bool compares_intervals,
                         Findings* findings);

// The largest batch for which a net fits into `available` bytes, if blobs grow with the batch and
// all else stays; `kinds` are those of a net with this batch. 0: what is available is not known, or
// no batch fits.
int64_t largest_batch_in(const MemoryKinds& kinds, int64_t batch, size_t available);

}  // namespace crema
