// The nets of a solver as flags change them: -model, -assume and -batch.
#pragma once

#include "base/log.h"
#include "net/prototxt/prototxt.h"
#include "tools/flags/flags_of.h"

namespace crema {

// Replaces every net that the solver names by -model, if that is given. Error if there is no such
// file.
void take_model_flag(const std::string& model, SolverFile* file);

// Replaces every net that the solver names by this one, which it trains.
void set_train_net(const NetParameter& net, SolverFile* file);

// Writes the solver's nets, with their sources replaced, inside the solver, if -assume or -batch is
// given.
using AssumeFlags = FlagsOf<"model", "assume", "batch", "level", "stage">;
void take_assume_flag(Log& log, const AssumeFlags& flags, SolverFile* file);

}  // namespace crema
