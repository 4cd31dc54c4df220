#include "tensor/format.h"

#include "base/strings.h"

namespace crema {

std::string Format::str() const {
  std::string text = cat(static_cast<int>(order), " ", channels, " ", points, " ");
  if (!blocking) return text;
  const auto add = [&](const auto& numbers) {
    for (const auto number : numbers) text += cat(number, ",");
    text += ' ';
  };
  add(blocking->padded_dims);
  add(blocking->strides);
  add(blocking->inner_sizes);
  add(blocking->inner_axes);
  return text;
}

int64_t Format::elements(const Shape& shape) const {
  if (channels > 0) return shape.count() / shape[1] * channels;
  if (order != Order::blocked) return shape.count();
  int64_t product = 1;
  for (int64_t extent : blocking->padded_dims) product *= extent;
  return product;
}

int64_t Format::offset(const Shape& shape, const int64_t* index) const {
  const int axes = shape.axes();
  if (order == Order::blocked) {
    std::vector<int64_t> outer(index, index + axes);
    int64_t inner = 0, stride = 1;
    for (int block = static_cast<int>(blocking->inner_sizes.size()) - 1; block >= 0; --block) {
      const int axis = blocking->inner_axes[block];
      const int64_t size = blocking->inner_sizes[block];
      inner += outer[axis] % size * stride;
      outer[axis] /= size;
      stride *= size;
    }
    for (int axis = 0; axis < axes; ++axis) inner += outer[axis] * blocking->strides[axis];
    return inner;
  }
  int64_t at = 0;
  if (order == Order::channels_last && axes >= 3) {
    at = index[0];
    for (int axis = 2; axis < axes; ++axis) at = at * shape[axis] + index[axis];
    return at * (channels > 0 ? channels : shape[1]) + index[1];
  }
  if (points > 0) {
    return index[0] * shape[1] + index[1] % points * (shape[1] / points) + index[1] / points;
  }
  for (int axis = 0; axis < axes; ++axis) at = at * shape[axis] + index[axis];
  return at;
}

bool Format::operator==(const Format& other) const {
  if (order != other.order || channels != other.channels || points != other.points) return false;
  return order != Order::blocked || *blocking == *other.blocking;
}

bool same_layout(const Format& a, const Format& b, const Shape& shape) {
  if (a == b) return true;
  if (a.order == Order::blocked || b.order == Order::blocked || a.channels != b.channels ||
      a.points != b.points)
    return false;
  if (shape.axes() < 3) return true;
  return shape[1] == 1 || shape.count(2) == 1;  // one of the two permuted groups of axes is trivial
}

}  // namespace crema
