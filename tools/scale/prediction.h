// The time of an iteration of data parallel training, predicted from that of one device.
#pragma once

#include <string>
#include <vector>

#include "tools/scale/network.h"
#include "tools/scale/step_profile.h"

namespace crema {

struct Exchange {
  BucketSizes buckets = bucket_sizes(Device::gpu);  // bytes of gradients in memory
  int wire = 4;                                     // bytes of a gradient on its way
  bool shards = false;  // each rank updates its part of the weights and sends it to the others
};

struct Prediction {
  int ranks = 1, hosts = 1;
  double seconds = 0;        // of an iteration
  double communication = 0;  // of all sums and gathers
  double exposed = 0;        // of them after the last backward has ended
  double last_bucket = 0;    // the sum that no computing can hide
  double update = 0;
  double efficiency = 1;  // speed of a rank, as a share of one alone
  double samples_per_second = 0;
  const char* algorithm = "none";  // of the largest sum

  // Sets the times of an iteration that takes so many seconds, and what follows from them.
  void take(const StepProfile& profile, double iteration);
};

// Each rank computes as `profile` describes. One sum runs at a time, during backward and in the
// order of the buckets; with iter_size above 1 during the last pass's, sharded after it. The model
// leaves out that ranks wait for the slowest of them, for data or for a network that others use,
// and that sums take memory bandwidth and cores from computing.
Prediction predict(const StepProfile& profile, const Network& network, const Exchange& exchange,
                   int ranks);

// The prediction with something changed.
struct WhatIf {
  std::string change;
  Prediction prediction;
};

// Everything that slows this down, each with the prediction without it; the most expensive first,
// and nothing that costs less than 1 % of the speed.
std::vector<WhatIf> limits_of(const StepProfile& profile, const Network& network,
                              const Exchange& exchange, int ranks);
// Changes that would make it faster by at least 1 %, the best first.
std::vector<WhatIf> remedies_of(const StepProfile& profile, const Network& network,
                                const Exchange& exchange, int ranks);

}  // namespace crema
