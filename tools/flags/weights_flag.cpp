#include "tools/flags/weights_flag.h"

#include "tools/flags/flags.h"

namespace crema {

WeightsMode weights_mode_of_flag() {
  require(FLAGS_weights_mode == "strict" || FLAGS_weights_mode == "match", "-weights_mode ",
          FLAGS_weights_mode, ": expected strict or match");
  return FLAGS_weights_mode == "match" ? WeightsMode::match : WeightsMode::strict;
}

void load_weights_of_flag(Net& net) {
  LoadOptions options;
  options.mode = weights_mode_of_flag();
  for (const std::string& path : split(FLAGS_weights, ',')) load_weights(net, path, options);
}

}  // namespace crema
