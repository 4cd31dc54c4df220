// Selects the nets that a solver trains and tests, from the many fields that can name them.
#pragma once

#include <string>
#include <vector>

#include "net/prototxt/prototxt.h"

namespace crema {

struct NetSource {
  std::string
      field;  // "net", "train_net", "test_net", "net_param", "train_net_param" or "test_net_param"
  int index = 0;             // in a repeated field
  NetState state;            // what the solver adds to phase, level and stages
  int test_iter = 0;         // batches of a test
  bool whole_epoch = false;  // test_epoch: a test is one pass over the net's data instead

  bool tested() const { return whole_epoch || test_iter > 0; }
};

// Error unless exactly one field names the training net.
NetSource train_source(const SolverFile& file);
// In Caffe's order: test_net_param, test_net, then net_param or net for the remaining test_iter;
// with test_epoch for the remaining test_state, or once where no test net is named.
std::vector<NetSource> test_sources(const SolverFile& file);

// Caffe's wording for a source: "net file: lenet.prototxt", "net_param"; for the training net, the
// whole log line.
std::string describe_test(const SolverParameter& solver, const NetSource& source);
std::string describe_train(const SolverParameter& solver, const NetSource& source);

// Reads the net. A relative path is looked up in the working directory, then in the solver's folder.
NetFile open_net(const SolverFile& file, const NetSource& source);

// Error when the training net would be in phase TEST, which the net itself or the solver can set:
// it would have no gradients.
void check_trained(const SolverFile& file, const NetSource& source, const NetFile& net,
                   const NetState& state);

}  // namespace crema
