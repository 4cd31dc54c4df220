// Shape: the extents of a tensor, slowest axis first as in Caffe (N, C, H, W). Without axes it is a
// scalar of one element.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace crema {

class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : dims_(dims) {}
  explicit Shape(std::vector<int64_t> dims) : dims_(std::move(dims)) {}

  int axes() const { return static_cast<int>(dims_.size()); }
  // Error if there is no such axis: a layer that does not count the axes of its bottoms would read
  // beyond them.
  int64_t operator[](int axis) const {
    if (!has(axis)) [[unlikely]]
      refuse(axis);
    return dims_[axis];
  }
  int64_t& operator[](int axis) {
    if (!has(axis)) [[unlikely]]
      refuse(axis);
    return dims_[axis];
  }
  const std::vector<int64_t>& dims() const { return dims_; }
  bool operator==(const Shape& other) const { return dims_ == other.dims_; }
  bool operator!=(const Shape& other) const { return dims_ != other.dims_; }

  int64_t count() const { return count(0, axes()); }
  // Product of the extents of axes [from, to).
  int64_t count(int from, int to) const;
  int64_t count(int from) const { return count(from, axes()); }

  // -1 means the last axis, as everywhere in Caffe; Error when out of range.
  int canonical_axis(int axis) const;

  void push_back(int64_t extent) { dims_.push_back(extent); }
  // "64 20 24 24 (737280)", as Caffe logs a shape.
  std::string str() const;
  // "64x20x24x24", for messages.
  std::string brief() const;

 private:
  bool has(int axis) const { return static_cast<size_t>(axis) < dims_.size(); }
  [[noreturn]] void refuse(int axis) const;

  std::vector<int64_t> dims_;
};

}  // namespace crema
