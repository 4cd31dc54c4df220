// The table that an update walks: the segments of the parameters, cut into blocks.
#pragma once

#include <functional>
#include <vector>

#include "tensor/tensor.h"

namespace crema {

// A run of elements with the same factors, in the arenas of weights, gradients and optimizer state
// alike: one learned blob. Segments of a layer lie next to each other.
struct Segment {
  int64_t offset = 0, count = 0;
  float lr_mult = 1, decay_mult = 1;
  int layer = 0;     // any number that is the layer's own
  Shape shape = {};  // of the blob; with its format: where Muon finds rows and columns
  Format format = {};
  bool clears = false;  // an update on a GPU leaves zeros where it found the gradient
};

// At most kBlock elements of a segment: what one CPU thread takes at a time.
struct Block {
  static constexpr int64_t kMost = 1024;
  int64_t begin;
  int32_t count, segment;
  float lr_mult, decay_mult;
  int32_t clears;
};

// Where a segment's blocks are, and which segments are of the same layer.
struct SegmentSpan {
  int32_t first_block, blocks;
  int32_t layer_begin, layer_end;
  float lr_mult;
};

// Segments with lr_mult 0 are left out; the others keep their order. Those that are not chosen keep
// their number, but have no blocks.
class BlockTable {
 public:
  BlockTable() = default;
  BlockTable(Context& context, const std::vector<Segment>& segments,
             const std::function<bool(const Segment&)>& chosen = nullptr);
  const Block* blocks() const { return static_cast<const Block*>(blocks_.raw()); }
  int64_t size() const { return size_; }
  const SegmentSpan* spans() const { return static_cast<const SegmentSpan*>(spans_.raw()); }
  int64_t segments() const { return segments_; }

 private:
  int64_t size_ = 0, segments_ = 0;
  Tensor blocks_, spans_;
};

}  // namespace crema
