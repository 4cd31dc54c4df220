// Boxes for detection layers: overlap, encoding against a prior, non-maximum suppression. Box
// functions work on one box and on both CPU and GPU; suppression here is for the CPU, and
// kernels/detection/nms.h does it for many lists of boxes on either device.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "base/host_device.h"

namespace crema {

// Corners, upper left first. In fractions of the image or in pixels: `pixel` below is added to x2 -
// x1 to get the width, 0 for fractions, 1 where a box from pixel 3 to pixel 3 is one pixel wide.
struct Box {
  float x1 = 0, y1 = 0, x2 = 0, y2 = 0;
};

// 0 for a box whose corners are swapped.
CREMA_HD inline float area(const Box& b, float pixel = 0) {
  return b.x2 < b.x1 || b.y2 < b.y1 ? 0 : (b.x2 - b.x1 + pixel) * (b.y2 - b.y1 + pixel);
}

// The intersection; its corners are swapped when it is empty.
CREMA_HD inline Box intersection(const Box& a, const Box& b) {
  return {a.x1 > b.x1 ? a.x1 : b.x1, a.y1 > b.y1 ? a.y1 : b.y1, a.x2 < b.x2 ? a.x2 : b.x2,
          a.y2 < b.y2 ? a.y2 : b.y2};
}

// The divisor of the area of the intersection: the area of the union (IoU), of the smaller box, or
// of the second, which is the better one where boxes are ranked.
enum class OverlapBy { both, smaller, second };

CREMA_HD inline float divisor_of_overlap(OverlapBy by, float common, float first, float second) {
  return by == OverlapBy::both                        ? first + second - common
         : by == OverlapBy::smaller && first < second ? first
                                                      : second;
}

// Between 0 and 1.
CREMA_HD inline float overlap(const Box& a, const Box& b, float pixel = 0,
                              OverlapBy by = OverlapBy::both) {
  const Box both = intersection(a, b);
  const float width = both.x2 - both.x1 + pixel, height = both.y2 - both.y1 + pixel;
  if (width <= 0 || height <= 0) return 0;
  const float common = width * height;
  return common / divisor_of_overlap(by, common, area(a, pixel), area(b, pixel));
}

// Clips a box to an image from 0 to (right, bottom).
CREMA_HD inline Box clipped(const Box& b, float right = 1, float bottom = 1) {
  const auto within = [](float x, float maximum) { return x < 0 ? 0 : x > maximum ? maximum : x; };
  return {within(b.x1, right), within(b.y1, bottom), within(b.x2, right), within(b.y2, bottom)};
}

// The meaning of the four values of a prediction.
enum class BoxCoding {
  corner,       // offsets of the corners
  center_size,  // offset of the center and log of the size, both relative to the size of the prior
  corner_size,  // offsets of the corners, relative to the size of the prior
};

// One for each of the four values: encoded values are divided by it.
struct BoxVariances {
  float v[4] = {1, 1, 1, 1};
};

// The box whose encoding against `prior` is `code`.
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

// Encodes `box` against `prior`, whose sides must be positive; with center_size those of the box,
// too.
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
  float threshold = 0.3f;  // of two boxes that overlap more, only the better one is kept
  float eta = 1;           // below 1: a threshold above 0.5 is multiplied by it after each kept box
  float pixel = 0;
  int64_t maximum = -1;  // stop after this many kept boxes; -1: never
  OverlapBy by = OverlapBy::both;
};

// Non-maximum suppression. `order`: indices into boxes, the best first; returns those that are
// kept.
std::vector<int> suppress(const Box* boxes, const std::vector<int>& order, const Suppression& how);

}  // namespace crema
