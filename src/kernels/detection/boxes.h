// Boxes of detection layers: overlap, coding against a prior, non-maximum suppression. One box at a
// time on CPU and GPU alike; suppression here is the CPU's, of many lists of boxes on either device
// it is kernels/detection/nms.h.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "base/host_device.h"

namespace crema {

// Corners, left and upper first. Either shares of the image or pixels: `pixel` below is what a box
// is wider than x2 - x1, 0 for shares, 1 where a box from pixel 3 to pixel 3 is one pixel wide.
struct Box {
  float x1 = 0, y1 = 0, x2 = 0, y2 = 0;
};

// 0 for a box whose corners are the wrong way round.
CREMA_HD inline float area(const Box& b, float pixel = 0) {
  return b.x2 < b.x1 || b.y2 < b.y1 ? 0 : (b.x2 - b.x1 + pixel) * (b.y2 - b.y1 + pixel);
}

// What both cover; its corners are the wrong way round when there is nothing.
CREMA_HD inline Box intersection(const Box& a, const Box& b) {
  return {a.x1 > b.x1 ? a.x1 : b.x1, a.y1 > b.y1 ? a.y1 : b.y1, a.x2 < b.x2 ? a.x2 : b.x2,
          a.y2 < b.y2 ? a.y2 : b.y2};
}

// What the area that two boxes have in common is divided by: the area that they cover together,
// that of the smaller one, or that of the second, which is the better one where boxes are ranked.
enum class OverlapBy { both, smaller, second };

CREMA_HD inline float divisor_of_overlap(OverlapBy by, float common, float first, float second) {
  return by == OverlapBy::both                        ? first + second - common
         : by == OverlapBy::smaller && first < second ? first
                                                      : second;
}

// 0 to 1.
CREMA_HD inline float overlap(const Box& a, const Box& b, float pixel = 0,
                              OverlapBy by = OverlapBy::both) {
  const Box both = intersection(a, b);
  const float width = both.x2 - both.x1 + pixel, height = both.y2 - both.y1 + pixel;
  if (width <= 0 || height <= 0) return 0;
  const float common = width * height;
  return common / divisor_of_overlap(by, common, area(a, pixel), area(b, pixel));
}

// Cut at the border of an image that goes from 0 to (right, bottom).
CREMA_HD inline Box clipped(const Box& b, float right = 1, float bottom = 1) {
  const auto within = [](float x, float most) { return x < 0 ? 0 : x > most ? most : x; };
  return {within(b.x1, right), within(b.y1, bottom), within(b.x2, right), within(b.y2, bottom)};
}

// What the four numbers of a prediction mean.
enum class BoxCoding {
  corner,       // shifts of the corners
  center_size,  // shift of the centre in sizes of the prior, logarithm of the size in such sizes
  corner_size,  // shifts of the corners in sizes of the prior
};

// One for each of the four numbers: a code is divided by it.
struct BoxVariances {
  float v[4] = {1, 1, 1, 1};
};

// The box whose code against `prior` is `code`.
CREMA_HD inline Box decode(BoxCoding coding, const Box& prior, const BoxVariances& variances,
                           const Box& code) {
  const float* v = variances.v;
  const float a = v[0] * code.x1, b = v[1] * code.y1, c = v[2] * code.x2, d = v[3] * code.y2;
  const float width = prior.x2 - prior.x1, height = prior.y2 - prior.y1;
  switch (coding) {
    case BoxCoding::corner:
      return {prior.x1 + a, prior.y1 + b, prior.x2 + c, prior.y2 + d};
    case BoxCoding::corner_size:
      return {prior.x1 + a * width, prior.y1 + b * height, prior.x2 + c * width,
              prior.y2 + d * height};
    case BoxCoding::center_size:
      break;
  }
  const float x = (prior.x1 + prior.x2) / 2 + a * width, y = (prior.y1 + prior.y2) / 2 + b * height;
  const float half_width = expf(c) * width / 2, half_height = expf(d) * height / 2;
  return {x - half_width, y - half_height, x + half_width, y + half_height};
}

// The code of `box` against `prior`, whose sides must be positive; with center_size those of the
// box, too.
CREMA_HD inline Box encode(BoxCoding coding, const Box& prior, const BoxVariances& variances,
                           const Box& box) {
  const float* v = variances.v;
  const float width = prior.x2 - prior.x1, height = prior.y2 - prior.y1;
  const float a = box.x1 - prior.x1, b = box.y1 - prior.y1, c = box.x2 - prior.x2,
              d = box.y2 - prior.y2;
  switch (coding) {
    case BoxCoding::corner:
      return {a / v[0], b / v[1], c / v[2], d / v[3]};
    case BoxCoding::corner_size:
      return {a / width / v[0], b / height / v[1], c / width / v[2], d / height / v[3]};
    case BoxCoding::center_size:
      break;
  }
  return {(a + c) / 2 / width / v[0], (b + d) / 2 / height / v[1],
          logf((box.x2 - box.x1) / width) / v[2], logf((box.y2 - box.y1) / height) / v[3]};
}

struct Suppression {
  float threshold = 0.3f;  // of two boxes that overlap more, the better one stays
  float eta = 1;           // below 1: factor on a threshold above 0.5 after each box that stays
  float pixel = 0;
  int64_t most = -1;  // stop when so many stay; -1: all
  OverlapBy by = OverlapBy::both;
};

// Non-maximum suppression. `order`: indexes into boxes, the best first; returns those that stay.
std::vector<int> suppress(const Box* boxes, const std::vector<int>& order, const Suppression& how);

}  // namespace crema
