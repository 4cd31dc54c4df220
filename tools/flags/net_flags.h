// The flags about a verb's net: which it is (-model, -set, -level, -stage, -assume, -batch), how it
// runs (-phase, -precision, -off, -recompute) and its weights (-weights, -weights_mode).
#pragma once

#include <string>
#include <vector>

#include "net/prototxt/net_input.h"
#include "net/weights/weights.h"
#include "tools/console/program_log.h"
#include "tools/flags/flag_reader.h"

namespace crema {

struct NetFlags {
  std::string model;                  // the file
  std::vector<std::string> settings;  // -set: in the order config file, environment, command line
  int level = 0;
  std::vector<std::string> stages;
  std::string assume;
  int batch = 0;
};
NetFlags net_flags(const FlagValues& given);

// The file with its own data. Error when -model is missing.
NetInput read_net(ProgramLog& log, const NetFlags& flags, Phase phase);
// With -assume, -batch and the passes that -off leaves. Error when -model is missing.
NetInput read_model(ProgramLog& log, const NetFlags& flags, Phase phase);

// Adds -level and -stage to a net's state. Caffe writes an empty stage when there is none, and its
// logs show that.
void add_level_and_stages(const NetFlags& flags, NetState* state);

// -phase; `otherwise` when it is not given.
Phase phase_of_flag(Phase otherwise);

// -precision, else what a file says (may be empty), else the device's default.
Precision precision_of_flag(const Context& context, const std::string& of_file = "");

// -off: what can be switched off, to see its effect or to isolate a problem.
struct Switches {
  // Passes: see src/README.md.
  bool fuse = true, format = true, memory = true, overlap = true, recompute = true;
  bool resident = true;  // databases that fit are kept in GPU memory
  bool capture = true;   // training iterations are replayed as CUDA graphs
};
// Error with the nearest name for an unknown one.
Switches switches_of_flag();
// -off and -recompute.
void set_passes(NetOptions* options);

WeightsMode weights_mode_of_flag();
// Loads every file of the list, in turn, as -weights_mode says.
void load_weights_of_list(Net& net, const std::string& files);
// Those of -weights.
void load_weights_of_flag(Net& net);

}  // namespace crema
