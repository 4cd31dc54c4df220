// -model and what goes with it: a verb's net for -phase, -level and -stage, with -assume and -batch
// applied.
#pragma once

#include <string>

#include "net/prototxt/net_input.h"
#include "tools/console/program_log.h"

namespace crema {

// The file with its own data. Error when -model is missing.
NetInput read_net(ProgramLog& log, Phase phase);
// With the passes that -off leaves. Error when -model is missing.
NetInput read_model(ProgramLog& log, Phase phase);

// -phase; `otherwise` when it is not given.
Phase phase_of_flag(Phase otherwise);

// Adds -level and -stage to a net's state. Caffe writes an empty stage when there is none, and its
// logs show that.
void add_level_and_stages(NetState* state);

// -precision, else that of a file (may be empty), else the device's default.
Precision precision_of_flag(const Context& context, const std::string& of_file = "");

}  // namespace crema
