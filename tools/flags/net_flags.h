// The flags about a verb's net: which it is (-model, -set, -level, -stage, -assume, -batch), how it
// runs (-phase, -precision, -off, -recompute) and its weights (-weights, -weights_mode).
#pragma once

#include <string>

#include "net/prototxt/net_input.h"
#include "net/weights/weights.h"
#include "tools/console/program_log.h"
#include "tools/flags/flags_of.h"

namespace crema {

// The file with its own data. Error when -model is missing.
using NetFlags = FlagsOf<"model", "set", "level", "stage">;
NetInput read_net(ProgramLog& log, const NetFlags& flags, Phase phase);

// With -assume, -batch and the passes that -off leaves. Error when -model is missing.
using ModelFlags = FlagsOf<"model", "set", "level", "stage", "assume", "batch", "off", "recompute">;
NetInput read_model(ProgramLog& log, const ModelFlags& flags, Phase phase);

// Adds -level and -stage to a net's state. Caffe writes an empty stage when there is none, and its
// logs show that.
using StateFlags = FlagsOf<"level", "stage">;
void add_level_and_stages(const StateFlags& flags, NetState* state);

// -phase; `otherwise` when it is not given.
Phase phase_of_flag(const std::string& phase, Phase otherwise);

// -precision, else what a file says (may be empty), else the device's default.
Precision precision_of_flag(const Context& context, const std::string& precision,
                            const std::string& of_file = "");

// -off: what can be switched off, to see its effect or to isolate a problem.
struct Switches {
  // Passes: see src/README.md.
  bool fuse = true, format = true, memory = true, overlap = true, recompute = true;
  bool micro_batches = true;
  bool resident = true;  // databases that fit are kept in GPU memory
  bool capture = true;   // iterations and passes are replayed as CUDA graphs
};
// Error with the nearest name for an unknown one.
Switches switches_of_flag(const std::string& off);

using PassFlags = FlagsOf<"off", "recompute">;
void set_passes(const PassFlags& flags, NetOptions* options);

// -weights_mode.
WeightsMode weights_mode_of_flag(const std::string& mode);

// Loads every file of -weights, in turn, as -weights_mode says.
using WeightFlags = FlagsOf<"weights", "weights_mode">;
void load_weights_of_flags(const WeightFlags& flags, Net& net);

}  // namespace crema
