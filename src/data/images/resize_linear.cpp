#include "data/images/resize_linear.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace crema {
namespace {

constexpr int kOne = 2048;  // weights are multiples of 1 / 2048

// Result i is (a weight of the value at `from`) + (another of its successor).
struct Taps {
  int64_t from;
  int weight, of_next;
};

// The factor as OpenCV computes it.
double step_of(int64_t from, int64_t to) {
  return 1. / (static_cast<double>(to) / static_cast<double>(from));
}

Taps taps_at(int64_t i, double step, int64_t extent, bool clamp) {
  auto place = static_cast<float>((static_cast<double>(i) + 0.5) * step - 0.5);
  auto from = static_cast<int64_t>(std::floor(place));
  place -= static_cast<float>(from);
  if (clamp && (from < 0 || from >= extent - 1)) {
    place = 0;
    from = from < 0 ? 0 : extent - 1;
  }
  // To the nearest, halves to the even one.
  return {from, static_cast<int>(std::lrintf((1.f - place) * kOne)),
          static_cast<int>(std::lrintf(place * kOne))};
}

template <int kChannels>
void resize_row(const uint8_t* from, const std::vector<Taps>& taps, int* to) {
  for (const Taps& tap : taps) {
    const uint8_t* const here = from + tap.from * kChannels;
    // Its weight is 0 at the end of a row.
    const uint8_t* const next = tap.of_next == 0 ? here : here + kChannels;
    for (int c = 0; c < kChannels; ++c) to[c] = here[c] * tap.weight + next[c] * tap.of_next;
    to += kChannels;
  }
}

template <int kChannels>
void resize_pixels(const Image& image, Image& resized) {
  const double step_x = step_of(image.width, resized.width),
               step_y = step_of(image.height, resized.height);
  std::vector<Taps> taps;
  for (int64_t x = 0; x < resized.width; ++x) taps.push_back(taps_at(x, step_x, image.width, true));
  const int64_t count = resized.width * kChannels;
  // Two rows of the image, resized horizontally, and which ones.
  std::vector<int> rows[2] = {std::vector<int>(count), std::vector<int>(count)};
  int64_t held[2] = {-1, -1};
  for (int64_t y = 0; y < resized.height; ++y) {
    const Taps tap = taps_at(y, step_y, image.height, false);
    int64_t wanted[2];
    for (int i = 0; i < 2; ++i) wanted[i] = std::clamp<int64_t>(tap.from + i, 0, image.height - 1);
    if (wanted[0] == held[1]) {
      std::swap(rows[0], rows[1]);
      std::swap(held[0], held[1]);
    }
    for (int i = 0; i < 2; ++i) {
      if (held[i] == wanted[i]) continue;
      resize_row<kChannels>(image.pixels.data() + wanted[i] * image.width * kChannels, taps,
                            rows[i].data());
      held[i] = wanted[i];
    }
    uint8_t* const to = resized.pixels.data() + y * count;
    const int *const upper = rows[0].data(), *const lower = rows[1].data();
    for (int64_t x = 0; x < count; ++x) {
      to[x] = static_cast<uint8_t>(
          (((tap.weight * (upper[x] >> 4)) >> 16) + ((tap.of_next * (lower[x] >> 4)) >> 16) + 2) >>
          2);
    }
  }
}

// Halves both extents.
void halve_pixels(const Image& image, Image& resized) {
  const int64_t channels = image.channels, row = image.width * channels;
  for (int64_t y = 0; y < resized.height; ++y) {
    const uint8_t* const from = image.pixels.data() + 2 * y * row;
    uint8_t* const to = resized.pixels.data() + y * resized.width * channels;
    for (int64_t x = 0; x < resized.width; ++x) {
      for (int64_t c = 0; c < channels; ++c) {
        const uint8_t* const first = from + 2 * x * channels + c;
        const int sum = first[0] + first[channels] + first[row] + first[row + channels];
        to[x * channels + c] = static_cast<uint8_t>((sum + 2) >> 2);
      }
    }
  }
}

}  // namespace

void resize_linear(int64_t height, int64_t width, Image& image) {
  if (height == image.height && width == image.width) return;
  Image resized{image.channels, height, width, {}};
  resized.pixels.resize(static_cast<size_t>(height * width * image.channels));
  if (image.height == 2 * height && image.width == 2 * width) {
    halve_pixels(image, resized);
  } else if (image.channels == 1) {
    resize_pixels<1>(image, resized);
  } else if (image.channels == 3) {
    resize_pixels<3>(image, resized);
  } else {
    resize_pixels<4>(image, resized);
  }
  image = std::move(resized);
}

}  // namespace crema
