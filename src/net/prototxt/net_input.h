// From a net file to what a Net is made of.
#pragma once

#include <string>

#include "net/net.h"
#include "net/prototxt/settings.h"
#include "proto/preparation.pb.h"

namespace crema {

struct NetInput {
  NetParameter net;            // without the layers that options.state excludes
  NetOptions options;          // state, folder and positions are set
  NetPreparation preparation;  // of the inputs of a net for use, as its file says
};

// Reads and upgrades a net and applies its rules. `outer` is the level and the stages that the
// caller adds to those of the file; `settings` change what it says. Logs what Caffe logs of that.
NetInput read_net_input(const std::string& path, Phase phase, const NetState& outer, Log& log,
                        Settings* settings = nullptr);

// The precision of this name, or of "" the one that the device computes in unless told otherwise:
// tf32 on a GPU, else fp32.
Precision precision_for(const Context& context, const std::string& name);

}  // namespace crema
