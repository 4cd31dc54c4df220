// How the ranks find each other: rank 0 listens, the others connect to it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/control_sockets.h"
#include "comm/control_standby.h"

namespace crema {

struct Rendezvous {
  // By rank; null if this rank has none: rank 0 has one to each of the others, they have one to
  // rank 0.
  std::vector<std::unique_ptr<Connection>> connections;
  std::vector<std::string> hosts;    // their names, by rank
  std::unique_ptr<Standby> standby;  // of rank 1, if there are more than two
  std::string standby_address;
  std::string token;         // the run's secret
  std::vector<Frame> early;  // what rank 0 sent right after the welcome
};

// Returns once all ranks have met. Error when they have not within the timeout; a RankLost where
// rank 0 tells the user.
Rendezvous connect_ranks(const ControlOptions& options);

// "rank 1", "rank 1 and rank 4", "rank 1, rank 4, rank 5 and 12 more"; with their hosts, if known:
// "rank 1 on node07".
std::string names_of(const std::vector<int>& ranks, const std::vector<std::string>& hosts);

}  // namespace crema
