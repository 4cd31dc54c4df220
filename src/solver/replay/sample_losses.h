// SampleLosses: the loss of each sample of a batch, as the net's loss layers give it for that sample alone.
#pragma once

#include <memory>
#include <vector>

#include "net/net.h"

namespace crema {

class SampleLosses {
 public:
  // The net must keep its blobs and outlive this.
  explicit SampleLosses(Net& net);
  ~SampleLosses();

  // Samples that it can tell apart; 0: none, as of losses that compare samples with each other or
  // have weights of their own.
  int64_t samples() const { return samples_; }
  // After a forward pass: the sum of the losses with their weights, for each sample.
  std::vector<double> losses();

 private:
  // A bottom of a loss: a slice of it, the whole of it, or its boxes of one sample.
  enum class Part { sample, whole, boxes };
  struct Bottom {
    int value = 0;
    Part part = Part::sample;
  };
  struct Loss;

  std::vector<Bottom> bottoms_of(const Node& node) const;
  void add(const Node& node, const std::vector<Bottom>& bottoms);

  Net& net_;
  int64_t samples_ = 0;
  std::vector<std::unique_ptr<Loss>> losses_;
};

}  // namespace crema
