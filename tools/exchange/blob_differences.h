// Differences between the blobs of a net and what another program computes for them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kernels/pointwise/quantize.h"
#include "net/net.h"

namespace crema {

struct VerifiedBlob {
  std::string where;  // of the layer that makes it
  std::string blob, shape;
  bool output = false;  // a result of the net
  double largest = 0;   // of the absolute differences
  double relative = 0;  // that, of the blob's largest value; nan where one is nan
  // If a layer rounds the blob to integers: the share of values that become the same one. -1: none does.
  double equal_integers = -1;
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
  struct Integers {
    std::optional<QuantizedValues> rounding;
    int64_t equal = 0, all = 0;
  };
  std::vector<Integers> integers_;
};

}  // namespace crema
