// Writes a random net layer by layer and knows the shape of each blob, so that every net is valid.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "device/context.h"
#include "fuzz/dice.h"
#include "proto/net.pb.h"
#include "tensor/shape.h"

namespace crema::tests {

struct RandomBlob {
  std::string name;
  Shape shape;
  int readers = 0;
  bool gradient = false;  // some parameter comes before it
  bool replaced = false;  // an in-place layer has written the next version
};

class NetWriter {
 public:
  // for_ranks: statistics are those of all ranks, so that ranks compute what one rank does.
  NetWriter(uint64_t seed, uint64_t number, int batch, bool for_ranks);

  Dice dice;
  const int batch;
  const bool for_ranks;

  // `params` is text that is added to the layer's message. Returns the first top; the others follow.
  int add(const std::string& type, const std::vector<int>& bottoms, const std::string& params = "",
          int tops = 1);
  // The same for a layer that may work in place, which is decided by the dice.
  int add_pointwise(const std::string& type, int bottom, const std::string& params = "");
  // The same for a layer with parameters, which may be shared with an earlier one, or frozen.
  int add_learned(const std::string& type, const std::vector<int>& bottoms,
                  const std::string& params, int parameters, bool may_work_in_place = false);

  // Random values in every pass.
  int data(const Shape& shape, const std::string& filler, bool always_the_same = false);
  int normal(const Shape& shape) { return data(shape, "type: 'gaussian' std: 1"); }
  // Integers from 0 to classes - 1: the position of the largest of as many random values.
  int labels(Shape shape, int classes);
  int choices(const Shape& shape) { return labels(shape, 2); }

  // A random number with few digits.
  std::string number(double low, double high);
  int between(int low, int high) {
    return low + static_cast<int>(dice.below(static_cast<size_t>(high - low + 1)));
  }
  bool maybe(int percent) { return dice.below(100) < static_cast<size_t>(percent); }

  const RandomBlob& blob(int index) const { return blobs_[index]; }
  const Shape& shape(int index) const { return blobs_[index].shape; }
  int blobs() const { return static_cast<int>(blobs_.size()); }
  // Blobs that layers may read: values with a batch, neither labels nor overwritten ones.
  std::vector<int> candidates;
  // One of them for which `suits` is true, most often a recent one; -1: there is none.
  template <typename Suits>
  int find(const Suits& suits) {
    std::vector<int> found;
    for (const int index : candidates) {
      if (!blobs_[index].replaced && suits(index)) found.push_back(index);
    }
    if (found.empty()) return -1;
    return found[found.size() - 1 - std::min(dice.below(found.size()), dice.below(found.size()))];
  }
  void set_loss_weight(int blob, const std::string& weight);
  const NetParameter& net() const { return net_; }

 private:
  int add(LayerParameter layer, const std::vector<int>& bottoms, int tops, bool in_place);

  Context context_;
  NetParameter net_;
  std::vector<RandomBlob> blobs_;
  int frozen_ = 0;                             // the first layers, whose parameters are frozen
  std::vector<int> producers_;                 // the layer of each blob
  std::map<std::string, std::string> shared_;  // `param` texts by what the layer is
};

}  // namespace crema::tests
