// From a net file to the arguments of a Net.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "net/net.h"
#include "net/prototxt/settings.h"
#include "proto/preparation.pb.h"

namespace crema {

struct NetInput {
  NetParameter net;    // without the layers that options.state excludes
  NetOptions options;  // state, folder and positions are set
  // The position of a field of a layer, such as "pooling_param.stride"; as NetFile::where.
  std::function<std::string(int layer, const std::string& field)> where_field;
  NetPreparation preparation;  // of the inputs of a net for use, as its file says
};

struct NetFile;

// The layers of a net that has been read in one phase. `outer` is as below.
NetInput net_input_of(std::shared_ptr<const NetFile> file, Phase phase, const NetState& outer,
                      Log& log);
// Reads and upgrades a net and applies its rules. `outer` is the level and the stages that the
// caller adds to those of the file; `settings` override the file. Logs the same as Caffe.
NetInput read_net_input(const std::string& path, Phase phase, const NetState& outer, Log& log,
                        Settings* settings = nullptr);
// The same for text in memory; `name` replaces the path in messages. Files that it names are looked
// up in the working directory.
NetInput parse_net_input(const std::string& text, const std::string& name, Phase phase,
                         const NetState& outer, Log& log, Settings* settings = nullptr);

// The precision of this name; for "" the device's default: tf32 on a GPU, otherwise fp32.
Precision precision_for(const Context& context, const std::string& name);

}  // namespace crema
