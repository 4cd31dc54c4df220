// Parts of a net that repeat: the modules of an Inception, the blocks of a ResNet.
#pragma once

#include <string>
#include <vector>

#include "tools/pages/drawing/net_boxes.h"

namespace crema {

struct NetBlock {
  std::vector<int> boxes;  // without the one whose result it begins with
  std::string name;        // that its layers share the beginning of; may be ""
  int kind = 0;            // equal for blocks that look the same, from 0
  int number = 0, of = 0;  // which one of its kind, from 1
};

// Parts between two boxes through which all goes that passes (biconnected components), of which
// there are at least two with the same types, kernels and connections.
std::vector<NetBlock> repeated_blocks(const NetBoxes& net);

}  // namespace crema
