// Changes that a net needs for other data.
#pragma once

#include <string>
#include <vector>

#include "tools/project/net_text.h"

namespace crema {

// The layers of this type that begin the net in a phase; the numbers of NetText::net().
std::vector<int> data_layers(const NetText& net, const std::string& type, Phase phase);

// Points the Data layers of both phases to databases, with this batch in training; tests have the net's own, but
// no more than `testing`. Error for a net without a Data layer in each phase.
struct DataSources {
  std::string training, testing;
  int64_t batch = 0, tests = 0;
};
// Where a net with a mean file then looks for that of the new data.
constexpr const char* mean_file = "data/mean.binaryproto";
void connect_databases(const DataSources& sources, NetText* net);

// Gives the layers that make the scores of losses this many outputs, and removes Accuracy layers that ask for
// more classes. Error for a net without SoftmaxWithLoss.
void set_classes(int64_t classes, NetText* net);

// Sets the fields that settings such as layer[conv1].convolution_param.num_output=64 name. Error for
// a layer or field that is not there.
void set_fields(const std::vector<std::string>& settings, NetText* net);

// Removes layers that no phase has without stages.
void remove_stages(NetText* net);

}  // namespace crema
