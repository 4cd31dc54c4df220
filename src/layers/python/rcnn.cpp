#include "layers/python/rcnn.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace crema {

double overlap_of(const PixelBox& a, const PixelBox& b) {
  const double width = std::min(a.x2, b.x2) - std::max(a.x1, b.x1) + 1,
               height = std::min(a.y2, b.y2) - std::max(a.y1, b.y1) + 1;
  if (width <= 0 || height <= 0) return 0;
  const double common = width * height;
  return common / (a.width() * a.height() + b.width() * b.height() - common);
}

BoxShift shift_between(const PixelBox& region, const PixelBox& object) {
  const double width = region.width(), height = region.height();
  const double x = object.x1 + 0.5 * object.width() - (region.x1 + 0.5 * width),
               y = object.y1 + 0.5 * object.height() - (region.y1 + 0.5 * height);
  return {{x / width, y / height, std::log(object.width() / width),
           std::log(object.height() / height)}};
}

std::vector<PixelBox> anchors_of(const ParamStr& settings) {
  const std::vector<double> ratios = settings.numbers("ratios", {0.5, 1, 2}),
                            scales = settings.numbers("scales", {8, 16, 32});
  const double base = settings.number("base_size", 16);
  require(base > 0, "base_size is ", base, ", but must be positive");
  require(!ratios.empty() && !scales.empty(), "param_str gives ", ratios.size(), " ratios and ",
          scales.size(), " scales: there must be at least one of each");
  std::vector<PixelBox> anchors;
  const double centre = (base - 1) / 2;
  for (const double ratio : ratios) {
    require(ratio > 0, "a ratio is ", ratio, ", but must be positive");
    // To even, as NumPy rounds.
    const double width = std::nearbyint(std::sqrt(base * base / ratio)),
                 height = std::nearbyint(width * ratio);
    for (const double scale : scales) {
      require(scale > 0, "a scale is ", scale, ", but must be positive");
      const double x = (width * scale - 1) / 2, y = (height * scale - 1) / 2;
      anchors.push_back({centre - x, centre - y, centre + x, centre + y});
    }
  }
  return anchors;
}

void require_objects(const Shape& shape) {
  require(shape.axes() >= 2 && shape.count(1) == 5, "the objects are ", shape.brief(),
          ", but must be Gx5: left, top, right, bottom, class");
}

std::vector<LabelledBox> objects_of(Context& context, const Tensor& rows) {
  const std::vector<float> values = to_floats(context, rows);
  std::vector<LabelledBox> objects;
  for (size_t i = 0; i + 5 <= values.size(); i += 5) {
    const float* v = &values[i];
    if (!(v[4] >= 0 && v[4] < 1e6f))
      fail("object ", i / 5, " is of class ", v[4], ", but classes are numbers from 0");
    objects.push_back({{v[0], v[1], v[2], v[3]}, static_cast<int>(v[4])});
  }
  return objects;
}

BestObject best_of(const PixelBox& box, const std::vector<LabelledBox>& objects) {
  BestObject best;
  for (size_t j = 0; j < objects.size(); ++j) {
    const double overlap = overlap_of(box, objects[j].box);
    if (best.object < 0 || overlap > best.overlap) best = {static_cast<int>(j), overlap};
  }
  return best;
}

Random sampling_random(const Context& context, const Layer& layer, const Forward& pass,
                       uint64_t purpose) {
  const Random all = context.random(mix(layer.id(), purpose), pass.pass);
  const int64_t first = pass.share.first;
  return first == 0 ? all : Random{all.seed, mix(all.stream, static_cast<uint64_t>(first))};
}

void draw(std::vector<int64_t>& from, size_t count, const Random& random) {
  if (from.size() <= count) return;
  for (size_t i = 0; i < count; ++i)
    std::swap(from[i], from[i + random.word(i) % (from.size() - i)]);
  from.resize(count);
}

std::vector<double> four_numbers(const ParamStr& settings, const char* key,
                                 std::vector<double> absent) {
  std::vector<double> four = settings.numbers(key, std::move(absent));
  require(four.size() == 4, "param_str gives ", four.size(), " numbers for ", key,
          ", but must give 4");
  return four;
}

}  // namespace crema
