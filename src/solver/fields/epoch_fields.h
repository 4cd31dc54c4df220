// Fields of a solver that count epochs of the training data. They become the fields that count
// iterations once the training net is known, before anything reads those.
#pragma once

#include <cstdint>
#include <string>

#include "net/net.h"
#include "net/prototxt/prototxt.h"

namespace crema {

// An epoch, and what an update reads of it on all ranks together; 0 records: not known.
struct EpochLength {
  int64_t records = 0, per_update = 1;

  // Whole epochs after so many updates.
  int64_t epochs_after(int64_t updates) const { return updates * per_update / records; }
  // The length of some epochs in updates, not rounded.
  double updates(float epochs) const;
  // The first number of updates that completes them.
  int64_t updates_to_complete(float epochs) const;
};

// The epoch length of the net's first source that has epochs. `may_read`: reads through a source
// whose length is not known otherwise.
EpochLength epoch_length(const Net& net, int iter_size, bool may_read = true);

// The field that says so: "max_epoch" of such a solver, for "max_iter"; else the field itself. The
// same for "stepvalue[1]".
std::string given_field(const SolverParameter& solver, const std::string& field);
// And what it says there.
std::string given_value(const SolverParameter& solver, const std::string& field);
// The first of these fields that is given; "": none.
std::string first_epoch_field(const SolverParameter& solver);

// Error where a field and its counterpart are both given, or a value makes no sense.
void check_epoch_fields(const SolverFile& file);
// Sets the fields that count iterations; says in one line what they become. No epochs are given:
// "". Error where the length is not known, or there would be too many iterations.
std::string count_in_iterations(const EpochLength& length, SolverFile* file);

// Whether something that comes again every `interval` updates, or every so many epochs if these are
// not 0, is due after so many updates. Of epochs the first update that completes a multiple counts,
// so that what is no whole number of updates does not drift.
bool falls_due(int64_t updates, int interval, float epochs, const EpochLength& length);

}  // namespace crema
