// Companions: sources whose samples belong together: one has the images and another the labels, or
// their samples are compared or joined one by one. They must stay in step.
#pragma once

#include <vector>

#include "proto/net.pb.h"

namespace crema {

struct Companions {
  int first = 0, second = 0;  // layers of the net, first < second
  int reader = 0;             // the layer that reads both
};

// The sources that read records from files or databases; each pair once. `net`: filtered.
std::vector<Companions> find_companions(const NetParameter& net);

}  // namespace crema
