// The shapes of CoSData's tops, as its message describes them.
#pragma once

#include <algorithm>

#include "proto/layer.pb.h"
#include "tensor/shape.h"

namespace crema {

inline Shape shape_of_column(const CoSDataParameter::Top& top, int64_t batch) {
  const auto extent = [](uint32_t changed, uint32_t stored) {
    return std::max<int64_t>(1, changed > 0 ? changed : stored);
  };
  const int64_t extents[] = {extent(top.out_channels(), top.channels()),
                             extent(top.out_height(), top.height()),
                             extent(top.out_width(), top.width())};
  if (top.transpose()) return {extents[0], batch};
  Shape shape = {batch};
  for (uint32_t i = 0; i < std::min(top.sample_num_axes(), 3u); ++i) shape.push_back(extents[i]);
  return shape;
}

}  // namespace crema
