// Folded weights (passes/fold.cpp): copies of a layer's weights with the channel maps of the layers
// after it multiplied in, or in a form of the kernel's own. All plans on the same parameters that
// want the same copy share it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "layers/channel_map.h"
#include "tensor/tensor.h"

namespace crema {

// A parameter that plans own.
struct PlanParameter {
  Shape shape;
  Format format = {};
  DType dtype = DType::f32;
  std::string packed_form = {};  // Prepared::Packed
  size_t packed_bytes = 0;
  size_t bytes() const {
    if (packed_bytes > 0) return packed_bytes;
    return static_cast<size_t>(format.elements(shape)) * size_of(dtype);
  }
  bool operator==(const PlanParameter&) const = default;
};

// What is folded, and the form that the kernel wants. Filled by fold_layers(), formats by
// prepare_nodes().
struct Folding {
  std::vector<int> parameters;  // the layer's own: weights, and bias if it has one
  struct Map {
    ChannelMap map;
    std::vector<int> parameters;  // parameters of the layer that computes the map
    bool operator==(const Map&) const = default;
  };
  std::vector<Map> maps;  // in the order of the layers; empty: the weights are packed only
  PlanParameter weights, bias;
  bool operator==(const Folding&) const = default;
};

struct FoldedWeights {
  Tensor weights, bias;
  uint64_t version = 0;  // the parameters' version when they were computed; 0: never
};

// The copies that some plan has. Nets in several threads may use it at the same time.
class FoldedStore {
 public:
  // The copy for this folding; allocates it if no plan has it.
  std::shared_ptr<FoldedWeights> take(Context& context, const Folding& folding);
  bool has(const Folding& folding);

 private:
  struct Entry {
    Folding folding;
    std::weak_ptr<FoldedWeights> weights;
  };
  std::shared_ptr<FoldedWeights> find(const Folding& folding);

  std::mutex mutex_;
  std::vector<Entry> entries_;
};

}  // namespace crema
