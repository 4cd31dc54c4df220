// Differences between the blobs of a net and what another program computes for them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "net/net.h"

namespace crema {

struct VerifiedBlob {
  std::string where;  // of the layer that makes it
  std::string blob, shape;
  bool output = false;  // a result of the net
  double largest = 0;   // of the absolute differences
  double relative = 0;  // that, of the blob's largest value; nan where one is nan
};

// Collects the differences of blobs over several inputs.
class BlobDifferences {
 public:
  // Values of the net's graph, by index, with their names in the other program.
  BlobDifferences(Net& net, const std::map<int, std::string>& values);

  // `blob` counts the values in the order of their index.
  void add(size_t blob, const std::vector<float>& ours, const std::vector<float>& theirs);

  // With the largest differences of all inputs.
  std::vector<VerifiedBlob> take();

 private:
  const Graph& graph_;
  std::vector<int> ids_;
  std::vector<VerifiedBlob> blobs_;
  std::vector<double> magnitudes_;  // of the largest value of each blob
};

}  // namespace crema
