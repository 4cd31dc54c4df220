// Passes that end at a layer, and gradients that begin at a blob, for a Model that keeps its blobs.
#pragma once

#include <span>
#include <string>

#include "net/net.h"

namespace crema {

class PartialPasses {
 public:
  explicit PartialPasses(Net& net) : net_(net) {}

  // The last layer to run for a name: that layer, or the last one that writes this blob.
  int last_layer(const std::string& name) const;
  // Where the last pass has ended: a blob is the version that the layers up to there have written.
  void end_at(int layer) { last_ = layer; }
  void end_at_last_layer() { last_ = net_.graph().net.layer_size() - 1; }
  // The content of a blob after that pass. Error when the pass ended before it.
  Tensor blob(const std::string& name) const;
  // Error when the last pass ended early.
  void require_whole() const;

  // Sets the gradient of a blob, and computes those of all blobs before it.
  void backward(const std::string& blob, std::span<const float> gradient);
  Tensor gradient(const std::string& blob) const;

 private:
  bool ends_early() const { return last_ >= 0 && last_ + 1 < net_.graph().net.layer_size(); }
  // A value of the graph; -1: no layer up to the last one writes the blob.
  int version(const std::string& blob) const;
  int require_version(const std::string& blob) const;

  Net& net_;
  int last_ = -1;  // the layer at which the last pass ended; -1: there was none
};

}  // namespace crema
