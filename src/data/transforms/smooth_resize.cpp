#include "data/transforms/smooth_resize.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"

namespace crema {
namespace {

// Weights are integers: shares of 2^kBits.
constexpr int kBits = 22;

// The pixels that a new one combines.
struct Taps {
  int64_t first = 0;
  std::vector<int32_t> weights;
};

// Halves go up.
int64_t nearest(double x) { return static_cast<int64_t>(std::floor(x + 0.5)); }

std::vector<Taps> taps(int64_t from, int64_t to) {
  std::vector<Taps> all(static_cast<size_t>(to));
  const double scale = static_cast<double>(from) / static_cast<double>(to),
               reach = std::max(scale, 1.0);
  for (int64_t i = 0; i < to; ++i) {
    const double middle = (static_cast<double>(i) + 0.5) * scale;
    const int64_t first = std::max<int64_t>(0, nearest(middle - reach)),
                  end = std::min(from, nearest(middle + reach));
    std::vector<double> shares;
    double sum = 0;
    for (int64_t x = first; x < end; ++x) {
      const double distance = (static_cast<double>(x) - middle + 0.5) * (1 / reach);
      shares.push_back(std::max(0.0, 1 - std::abs(distance)));
      sum += shares.back();
    }
    Taps& tap = all[static_cast<size_t>(i)];
    tap.first = first;
    for (const double share : shares)
      tap.weights.push_back(static_cast<int32_t>(nearest(share / sum * (1 << kBits))));
  }
  return all;
}

// The pixels at `bytes`, `step` apart.
uint8_t weighted(const uint8_t* bytes, int64_t step, const Taps& tap) {
  int32_t sum = 1 << (kBits - 1);
  for (const int32_t weight : tap.weights) {
    sum += *bytes * weight;
    bytes += step;
  }
  return static_cast<uint8_t>(std::clamp(sum >> kBits, 0, 255));
}

Image resize_rows(const Image& image, int64_t width) {
  const int64_t channels = image.channels;
  Image to{channels, image.height, width, {}};
  to.pixels.reserve(static_cast<size_t>(channels * image.height * width));
  const std::vector<Taps> columns = taps(image.width, width);
  for (int64_t y = 0; y < image.height; ++y) {
    const uint8_t* row = image.pixels.data() + y * image.width * channels;
    for (const Taps& tap : columns) {
      for (int64_t c = 0; c < channels; ++c)
        to.pixels.push_back(weighted(row + tap.first * channels + c, channels, tap));
    }
  }
  return to;
}

Image resize_columns(const Image& image, int64_t height) {
  const int64_t row = image.width * image.channels;
  Image to{image.channels, height, image.width, {}};
  to.pixels.reserve(static_cast<size_t>(height * row));
  for (const Taps& tap : taps(image.height, height)) {
    for (int64_t i = 0; i < row; ++i)
      to.pixels.push_back(weighted(image.pixels.data() + tap.first * row + i, row, tap));
  }
  return to;
}

}  // namespace

Image smooth_resize(const Image& image, int64_t height, int64_t width) {
  require(image.height > 0 && image.width > 0 && height > 0 && width > 0 &&
              height <= kMaxPixels / width && image.height <= kMaxPixels / width,
          "an image of ", image.height, "x", image.width, " cannot be resized to ", height, "x",
          width);
  Image rows = width == image.width ? image : resize_rows(image, width);
  return height == rows.height ? rows : resize_columns(rows, height);
}

}  // namespace crema
