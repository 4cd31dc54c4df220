// -model and what goes with it: a verb's net for -phase, -level and -stage, with -assume and -batch
// applied.
#pragma once

#include <string>

#include "net/prototxt/net_input.h"
#include "tools/program_log.h"

namespace crema {

// With the passes that -off leaves. Error when -model is missing.
NetInput read_model(ProgramLog& log, Phase phase);

// -phase; `otherwise` when it is not given.
Phase phase_of_flag(Phase otherwise);

// Adds -level and -stage to a net's state. Caffe writes an empty stage when there is none, and its
// logs show that.
void add_level_and_stages(NetState* state);

// Samples in one forward pass: the first extent of the first blob of a source or Input layer, else
// 1.
int64_t batch_of(const Net& net);
// Records per epoch of the net's first source; 0 when it does not know.
int64_t records_of(const Net& net);

// -precision, else what a file says (may be empty), else the device's default.
Precision precision_of_flag(const Context& context, const std::string& of_file = "");

}  // namespace crema
