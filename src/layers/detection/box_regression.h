// Box regression of the multi-scale detector (MS-CNN): an object relative to a region, coded as
// (shift of the centre in units of the region's size, logarithm of the size ratio), minus a mean,
// over a standard deviation.
#pragma once

#include <algorithm>

#include "base/error.h"
#include "kernels/detection/boxes.h"
#include "proto/params/forks_multiscale.pb.h"

namespace crema {

// Converts a box of first and last pixels to one of edges, and back.
inline Box edges_of(const float* pixels) {
  return {pixels[0], pixels[1], pixels[2] + 1, pixels[3] + 1};
}
inline Box pixels_of(const Box& edges) { return {edges.x1, edges.y1, edges.x2 - 1, edges.y2 - 1}; }

struct BoxRegression {
  float mean[4] = {0, 0, 0, 0}, deviation[4] = {1, 1, 1, 1};

  explicit BoxRegression(const BBoxRegParameter& p) {
    if (p.bbox_mean_size() == 0 || p.bbox_std_size() == 0) return;
    require(p.bbox_mean_size() == 4 && p.bbox_std_size() == 4, "bbox_reg_param has ",
            p.bbox_mean_size(), " bbox_mean and ", p.bbox_std_size(), " bbox_std: give 4 of each");
    std::copy(p.bbox_mean().begin(), p.bbox_mean().end(), mean);
    std::copy(p.bbox_std().begin(), p.bbox_std().end(), deviation);
    require(*std::min_element(deviation, deviation + 4) > 0, "bbox_std must be positive");
  }

  // All boxes are given by their edges.
  Box decoded(const Box& region, const float* code) const {
    const auto at = [&](int k) { return code[k] * deviation[k] + mean[k]; };
    return decode(BoxCoding::center_size, region, {}, {at(0), at(1), at(2), at(3)});
  }
  Box encoded(const Box& region, const Box& object) const {
    const Box c = encode(BoxCoding::center_size, region, {}, object);
    return {(c.x1 - mean[0]) / deviation[0], (c.y1 - mean[1]) / deviation[1],
            (c.x2 - mean[2]) / deviation[2], (c.y2 - mean[3]) / deviation[3]};
  }
};

}  // namespace crema
