#include "data/transforms/mosaic.h"

#include <algorithm>
#include <cmath>

#include "data/transforms/warp.h"

namespace crema {
namespace {

// A rectangle of the result, in pixels.
struct Quarter {
  int64_t top, left, height, width;
};

// The part of an image that a quarter shows, in fractions of it.
Region draw_part(const Image& image, const Quarter& quarter, Rng& rng) {
  const auto height = static_cast<float>(quarter.height), width = static_cast<float>(quarter.width);
  const float scale =
      std::max(height / static_cast<float>(image.height), width / static_cast<float>(image.width));
  const float rows = std::min(1.f, height / scale / static_cast<float>(image.height)),
              columns = std::min(1.f, width / scale / static_cast<float>(image.width));
  const float top = rng.between(0, 1 - rows), left = rng.between(0, 1 - columns);
  return {left, top, left + columns, top + rows};
}

void put(const Image& image, const Region& part, const Quarter& quarter, Image& result) {
  Warp warp{image.height, image.width};
  const auto height = static_cast<double>(image.height), width = static_cast<double>(image.width);
  warp.crop(part.ymin * height, part.xmin * width, part.height() * height, part.width() * width,
            quarter.height, quarter.width);
  const Image shown = warp_image(image, warp, {0});
  const int64_t run = quarter.width * image.channels;
  for (int64_t y = 0; y < quarter.height; ++y) {
    std::copy_n(
        shown.pixels.begin() + y * run, run,
        result.pixels.begin() + ((quarter.top + y) * result.width + quarter.left) * image.channels);
  }
}

// In fractions of the result.
void put(const std::vector<Object>& objects, const Region& part, float least_visible,
         const Region& quarter, std::vector<Object>& result) {
  constexpr float kRounding = 1e-5f;
  std::vector<Object> kept;
  for (const Object& object : crop_objects(objects, Region{}, nullptr)) {
    if (coverage(object.box, part) >= least_visible - kRounding) kept.push_back(object);
  }
  for (Object& object : crop_objects(kept, part, nullptr)) {
    const Region& box = object.box;
    const auto x = [&](float at) { return quarter.xmin + at * quarter.width(); };
    const auto y = [&](float at) { return quarter.ymin + at * quarter.height(); };
    object.box = {x(box.xmin), y(box.ymin), x(box.xmax), y(box.ymax)};
    result.push_back(object);
  }
}

}  // namespace

BoxedImage join_four(const AugmentMosaic& how, const std::array<BoxedImage, 4>& images, Rng& rng) {
  const Image& first = images[0].image;
  const auto height = static_cast<float>(first.height), width = static_cast<float>(first.width);
  const float least = how.least_center();
  const int64_t row = std::lround(rng.between(least, 1 - least) * height),
                column = std::lround(rng.between(least, 1 - least) * width);
  const int64_t place = rng.pick(4);  // of the first one
  BoxedImage result{first, {}};
  for (int64_t i = 0; i < 4; ++i) {
    const bool below = (place + i) / 2 % 2 == 1, right = (place + i) % 2 == 1;
    const Quarter quarter{below ? row : 0, right ? column : 0, below ? first.height - row : row,
                          right ? first.width - column : column};
    if (quarter.height == 0 || quarter.width == 0) continue;
    const BoxedImage& from = images[i];
    const Region part = draw_part(from.image, quarter, rng);
    put(from.image, part, quarter, result.image);
    const auto share = [](int64_t at, float of) { return static_cast<float>(at) / of; };
    put(from.objects, part, how.least_visible(),
        {share(quarter.left, width), share(quarter.top, height),
         share(quarter.left + quarter.width, width), share(quarter.top + quarter.height, height)},
        result.objects);
  }
  return result;
}

}  // namespace crema
