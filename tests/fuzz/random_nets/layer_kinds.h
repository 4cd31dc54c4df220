// The parts of a random net. Each function adds a layer, or a few that belong together, after blob
// `b` and returns the blobs that others may read; none: the kind does not fit this blob.
#pragma once

#include <string>
#include <vector>

#include "fuzz/random_nets/net_writer.h"

namespace crema::tests {

struct LayerKind {
  const char* name;
  int weight;  // how often, relative to the others
  std::vector<int> (*add)(NetWriter& w, int b);
};

const std::vector<LayerKind>& pointwise_kinds();
const std::vector<LayerKind>& vision_kinds();
const std::vector<LayerKind>& norm_kinds();
const std::vector<LayerKind>& shape_kinds();
const std::vector<LayerKind>& sequence_kinds();
// These return the loss, or other results computed from b.
const std::vector<LayerKind>& loss_kinds();
// Metrics and other readers without a gradient.
const std::vector<LayerKind>& metric_kinds();

// One of them, by weight.
const LayerKind& pick(Dice& dice, const std::vector<LayerKind>& kinds);

inline constexpr int64_t kMaxCount = 6000;  // elements of a blob that further layers read

inline bool is_image(const Shape& shape) { return shape.axes() == 4; }
// Text of fillers: weights that keep magnitudes, and small random biases.
std::string weight_filler(NetWriter& w);
std::string bias_filler(NetWriter& w);

}  // namespace crema::tests
