// Which channels of a net's layers belong together: one can be removed only with the others.
#pragma once

#include <string>
#include <vector>

#include "net/graph/graph.h"

namespace crema {

// Positions along an axis of a parameter.
struct ChannelPart {
  int parameter = 0;  // of Graph::parameters
  int axis = 0;       // 0: values of the channel; 1: what the next layer multiplies it with
  int64_t first = 0;  // where the group's first channel begins
  int64_t width = 1;  // positions of each channel
};

// Channels that layers make, and what reads them.
struct ChannelGroup {
  int64_t channels = 0;
  std::vector<std::string> layers;  // whose rows they are
  std::vector<std::string>
      counts;  // layers with as many groups as channels, which these are (depthwise)
  std::vector<ChannelPart> parts;
};

// The groups that can be made smaller: if all values along axis 0 of a channel are 0, so is the channel, and nothing
// changes without it. Not among them are channels of inputs and of outputs, and those that a layer reads which
// depends on their number or position.
std::vector<ChannelGroup> channel_groups(const Graph& graph);

}  // namespace crema
