// The table that an update walks over: the segments of the parameters, cut into chunks.
#pragma once

#include <functional>
#include <vector>

#include "tensor/tensor.h"

namespace crema {

// A segment: one learned blob, a contiguous run of elements with the same factors at the same
// offset in the arenas of weights, gradients and optimizer state. The segments of a layer are
// contiguous.
struct Segment {
  int64_t offset = 0, count = 0;
  float lr_mult = 1, decay_mult = 1;
  int layer = 0;     // any number unique to the layer
  Shape shape = {};  // of the blob; with its format it tells Muon the rows and columns
  Format format = {};
  bool clear_gradient = false;  // an update on a GPU zeroes the gradient after reading it
  bool vector = false;          // Muon treats it like a vector even if it is a matrix
};

// At most kMax elements of a segment: the unit of work of a CPU thread and of a CUDA block.
struct Chunk {
  static constexpr int64_t kMax = 1024;
  int64_t begin;
  int32_t count, segment;
  float lr_mult, decay_mult;
  int32_t clear_gradient;
};

// The chunks of a segment, and the range of segments of its layer.
struct SegmentSpan {
  int32_t first_chunk, chunks;
  int32_t layer_begin, layer_end;
  float lr_mult, rows;  // rows: of the blob as a matrix
};

// Segments with lr_mult 0 are left out; the others keep their order. Segments that are not chosen
// keep their index, but have no chunks.
class ChunkTable {
 public:
  ChunkTable() = default;
  ChunkTable(Context& context, const std::vector<Segment>& segments,
             const std::function<bool(const Segment&)>& chosen = nullptr);
  const Chunk* chunks() const { return static_cast<const Chunk*>(chunks_.raw()); }
  int64_t size() const { return size_; }
  const SegmentSpan* spans() const { return static_cast<const SegmentSpan*>(spans_.raw()); }
  int64_t segments() const { return segments_; }

 private:
  int64_t size_ = 0, segments_ = 0;
  Tensor chunks_, spans_;
};

}  // namespace crema
