#include "data/transforms/resize_floats.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace crema {
namespace {

// The two pixels of a row or column around a new one, and its distance to the second.
struct Between {
  int64_t first, second;
  float share;
};

std::vector<Between> places(int64_t from, int64_t to, double factor) {
  std::vector<Between> all(static_cast<size_t>(to));
  const double step = 1 / factor;
  for (int64_t i = 0; i < to; ++i) {
    const auto at = static_cast<float>((static_cast<double>(i) + 0.5) * step - 0.5);
    auto first = static_cast<int64_t>(std::floor(at));
    float share = at - static_cast<float>(first);
    if (first < 0) first = 0, share = 0;
    if (first >= from - 1) first = from - 1, share = 0;
    all[static_cast<size_t>(i)] = {first, std::min(first + 1, from - 1), share};
  }
  return all;
}

}  // namespace

int64_t scaled_side(int64_t side, double factor) {
  return static_cast<int64_t>(std::nearbyint(static_cast<double>(side) * factor));
}

void resize_floats(const Image& image, const MeanTable& mean, double factor, bool flipped,
                   float* to) {
  const int64_t height = scaled_side(image.height, factor),
                width = scaled_side(image.width, factor);
  std::vector<Between> columns = places(image.width, width, factor);
  const std::vector<Between> rows = places(image.height, height, factor);
  if (flipped) {
    for (Between& column : columns) {
      column.first = image.width - 1 - column.first;
      column.second = image.width - 1 - column.second;
    }
  }
  // Two adjacent rows of the image, resized: most new rows use those of the one before.
  std::vector<float> kept[2];
  int64_t kept_row[2] = {-1, -1};
  const auto resized_row = [&](int64_t row) -> const float* {
    std::vector<float>& values = kept[row % 2];
    if (kept_row[row % 2] == row) return values.data();
    kept_row[row % 2] = row;
    values.resize(static_cast<size_t>(3 * width));
    const uint8_t* pixels = image.pixels.data() + row * image.width * 3;
    for (int64_t c = 0; c < 3; ++c) {
      for (int64_t x = 0; x < width; ++x) {
        const Between& at = columns[static_cast<size_t>(x)];
        values[static_cast<size_t>(c * width + x)] =
            mean(c, pixels[at.first * 3 + c]) * (1 - at.share) +
            mean(c, pixels[at.second * 3 + c]) * at.share;
      }
    }
    return values.data();
  };
  for (int64_t y = 0; y < height; ++y) {
    const Between& at = rows[static_cast<size_t>(y)];
    const float *above = resized_row(at.first), *below = resized_row(at.second);
    for (int64_t c = 0; c < 3; ++c) {
      float* row = to + (c * height + y) * width;
      for (int64_t x = 0; x < width; ++x)
        row[x] = above[c * width + x] * (1 - at.share) + below[c * width + x] * at.share;
    }
  }
}

}  // namespace crema
