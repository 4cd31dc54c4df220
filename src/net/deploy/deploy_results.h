// The results of a net when it is used: what its losses and metrics read.
#pragma once

#include <string>
#include <vector>

#include "net/deploy/deploy_graph.h"

namespace crema {

struct DeployResult {
  int blob = -1;
  int layer = -1;          // the loss that an activation replaces, else -1
  std::string activation;  // "Softmax" or "Sigmoid": what the loss computes from the blob; or ""
};

// In the order of the layers that read them. Adds to `notes` what is left out.
std::vector<DeployResult> find_results(const DeployGraph& graph, std::vector<std::string>* notes);

// For each layer, whether it leads to one of the results.
std::vector<bool> layers_before(const DeployGraph& graph, const std::vector<int>& blobs);

}  // namespace crema
