// Common code of the native versions of py-faster-rcnn's and R-FCN's layers: boxes by their first
// and last pixels (from pixel 3 to pixel 3 is one pixel wide), computed in double as in NumPy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/random.h"
#include "layers/layer.h"
#include "layers/python/param_str.h"

namespace crema {

struct PixelBox {
  double x1 = 0, y1 = 0, x2 = 0, y2 = 0;
  double width() const { return x2 - x1 + 1; }
  double height() const { return y2 - y1 + 1; }
};

// Intersection over union.
double overlap_of(const PixelBox& a, const PixelBox& b);

// The box regression targets that turn `region` into `object`: the shift of the centre in widths
// and heights of the region, and the logarithms of the size ratios.
struct BoxShift {
  double v[4];
};
BoxShift shift_between(const PixelBox& region, const PixelBox& object);

// Boxes around the centre of the first base_size x base_size pixels, for each ratio (height to width) one
// of each scale. Settings: base_size (16), ratios (0.5, 1, 2), scales (8, 16, 32).
std::vector<PixelBox> anchors_of(const ParamStr& settings);

// Each row is box and class, five values.
struct LabelledBox {
  PixelBox box;
  int label;
};
// Error if the blob is not G x 5.
void require_objects(const Shape& shape);
std::vector<LabelledBox> objects_of(Context& context, const Tensor& rows);

// The object that overlaps a box most, the first of equals; -1 if there are no objects.
struct BestObject {
  int object = -1;
  double overlap = 0;
};
BestObject best_of(const PixelBox& box, const std::vector<LabelledBox>& objects);

// Random numbers of one pass of a layer for one purpose. Ranks, which have other images, get others.
Random sampling_random(const Context& context, const Layer& layer, const Forward& pass,
                       uint64_t purpose);

// `count` of the values, drawn without replacement and shuffled; if there are no more than that, all in
// order.
void draw(std::vector<int64_t>& from, size_t count, const Random& random);

// Error unless all four are there.
std::vector<double> four_numbers(const ParamStr& settings, const char* key,
                                 std::vector<double> absent);

}  // namespace crema
