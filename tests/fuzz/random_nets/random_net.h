// A random net with a solver: a function of a seed and of the net's number.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "proto/net.pb.h"

namespace crema::tests {

struct RandomNet {
  uint64_t seed = 0, number = 0;
  bool for_ranks = false;  // statistics are those of all ranks
  NetParameter net;
  std::string rules;  // the solver's fields except net, display and snapshots

  // A solver's prototxt that `crema train -solver` runs; `more` are further fields of it.
  std::string text(const std::string& more = "") const;
};

RandomNet make_random_net(uint64_t seed, uint64_t number);
// A solver's prototxt as text() writes it.
RandomNet read_random_net(const std::string& path);

// The number of layers of each type in these nets.
using TypeCounts = std::map<std::string, int64_t>;
void count_types(const RandomNet& net, TypeCounts* counts);

}  // namespace crema::tests
