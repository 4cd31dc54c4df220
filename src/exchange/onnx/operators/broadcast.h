// Shapes of ONNX's operators with several inputs.
#pragma once

#include <vector>

#include "tensor/shape.h"

namespace crema {

// The shape of a and b together: axes count from the end, and 1 stretches. Error if they differ.
Shape broadcast_shape(const Shape& a, const Shape& b);

// For each axis of `to`, the distance in memory between neighbours of `from`, which is stretched to
// it; 0 where it stretches.
std::vector<int64_t> broadcast_steps(const Shape& from, const Shape& to);

// Walks over the positions of a shape, and at the same time over offsets with these steps.
class Walk {
 public:
  Walk(const Shape& shape, std::vector<std::vector<int64_t>> steps)
      : shape_(shape), steps_(std::move(steps)), at_(shape.axes()), offsets_(steps_.size()) {}
  int64_t offset(size_t i) const { return offsets_[i]; }
  const std::vector<int64_t>& position() const { return at_; }
  void next();

 private:
  const Shape shape_;
  const std::vector<std::vector<int64_t>> steps_;
  std::vector<int64_t> at_, offsets_;
};

// Distances in memory of a shape's neighbours.
std::vector<int64_t> dense_steps(const Shape& shape);

}  // namespace crema
