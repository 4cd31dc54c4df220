#include "data/transforms/pixels.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace crema {
namespace {

using ByteTable = std::array<uint8_t, 256>;

// Exact in double precision until it is rounded.
uint8_t blend(int from, int to, float factor) {
  const double value = from + static_cast<double>(factor) * (to - from);
  return static_cast<uint8_t>(std::nearbyint(std::clamp(value, 0., 255.)));
}

template <typename Make>
void change_values(Image& image, const Make& make) {
  ByteTable table;
  for (int i = 0; i < 256; ++i) table[i] = make(i);
  for (uint8_t& value : image.pixels) value = table[value];
}

// make(counts): the table of a channel with this histogram.
template <typename Make>
void change_channels(Image& image, const Make& make) {
  const auto channels = static_cast<size_t>(image.channels);
  for (size_t c = 0; c < channels; ++c) {
    std::array<int64_t, 256> counts{};
    for (size_t i = c; i < image.pixels.size(); i += channels) ++counts[image.pixels[i]];
    const ByteTable table = make(counts);
    for (size_t i = c; i < image.pixels.size(); i += channels)
      image.pixels[i] = table[image.pixels[i]];
  }
}

int grey_of(const uint8_t* pixel, bool red_first) {
  const int red = pixel[red_first ? 0 : 2], blue = pixel[red_first ? 2 : 0];
  return (19595 * red + 38470 * pixel[1] + 7471 * blue + 0x8000) >> 16;
}

// One of three colours at a hue from 0 to 6 whose largest value is 1 and smallest 0; `offset` is 0
// for red, 4 for green and 2 for blue.
float of_hue(float hue, float offset) {
  const float sum = hue + offset, at = sum < 6 ? sum : sum - 6;
  return std::clamp(std::abs(at - 3) - 1, 0.f, 1.f);
}

constexpr int kNormalBits = 12;

// As many equally likely numbers that are together normally distributed: the largest is 3.7. One
// look-up is several times as fast as to compute one.
const std::vector<float>& normal_numbers() {
  static const std::vector<float> numbers = [] {
    constexpr int kCount = 1 << kNormalBits;
    std::vector<float> made(kCount);
    double x = 0;
    for (int i = kCount / 2; i < kCount; ++i) {
      // Newton's method for the point below which a given fraction of all numbers falls.
      const double share = (i + 0.5) / kCount;
      for (int step = 0; step < 8; ++step)
        x += (share - 0.5 * std::erfc(-x / std::sqrt(2.))) * std::sqrt(2 * 3.14159265358979323846) *
             std::exp(x * x / 2);
      made[i] = static_cast<float>(x);
      made[kCount - 1 - i] = static_cast<float>(-x);
    }
    return made;
  }();
  return numbers;
}

}  // namespace

void change_brightness(float factor, Image& image) {
  change_values(image, [&](int i) { return blend(0, i, factor); });
}

void change_contrast(float factor, bool red_first, Image& image) {
  const int64_t step = image.channels == 3 ? 3 : 1;
  const auto count = static_cast<int64_t>(image.pixels.size()) / step;
  int64_t sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    const uint8_t* const pixel = image.pixels.data() + i * step;
    sum += step == 3 ? grey_of(pixel, red_first) : *pixel;
  }
  const auto mean = static_cast<int>((2 * sum + count) / (2 * count));
  change_values(image, [&](int i) { return blend(mean, i, factor); });
}

void change_saturation(float factor, bool red_first, Image& image) {
  if (image.channels != 3) return;
  for (size_t i = 0; i < image.pixels.size(); i += 3) {
    uint8_t* const pixel = image.pixels.data() + i;
    const int grey = grey_of(pixel, red_first);
    for (int c = 0; c < 3; ++c) pixel[c] = blend(grey, pixel[c], factor);
  }
}

void change_hue(float circles, bool red_first, Image& image) {
  if (image.channels != 3) return;
  for (size_t i = 0; i < image.pixels.size(); i += 3) {
    uint8_t* const pixel = image.pixels.data() + i;
    uint8_t &red = pixel[red_first ? 0 : 2], &green = pixel[1], &blue = pixel[red_first ? 2 : 0];
    const int most = std::max({red, green, blue}), least = std::min({red, green, blue});
    if (most == least) continue;
    const auto range = static_cast<float>(most - least);
    const auto part = [&](int a, int b) { return static_cast<float>(a - b) / range; };
    float hue = most == red     ? part(green, blue)
                : most == green ? part(blue, red) + 2
                                : part(red, green) + 4;
    hue += 6 * circles;
    hue -= 6 * std::floor(hue / 6);
    const auto value = [&](float offset) {
      const float exact = static_cast<float>(least) + range * of_hue(hue, offset);
      return static_cast<uint8_t>(std::nearbyint(exact));
    };
    red = value(0);
    green = value(4);
    blue = value(2);
  }
}

void make_grey(bool red_first, Image& image) {
  if (image.channels != 3) return;
  for (size_t i = 0; i < image.pixels.size(); i += 3) {
    uint8_t* const pixel = image.pixels.data() + i;
    std::fill_n(pixel, 3, static_cast<uint8_t>(grey_of(pixel, red_first)));
  }
}

void stretch_contrast(Image& image) {
  change_channels(image, [](const std::array<int64_t, 256>& counts) {
    int least = 0, most = 255;
    while (least < 255 && counts[least] == 0) ++least;
    while (most > 0 && counts[most] == 0) --most;
    ByteTable table;
    for (int i = 0; i < 256; ++i) {
      const int value = most > least ? 255 * (i - least) / (most - least) : i;
      table[i] = static_cast<uint8_t>(std::clamp(value, 0, 255));
    }
    return table;
  });
}

void equalize(Image& image) {
  change_channels(image, [&](const std::array<int64_t, 256>& counts) {
    int64_t others = image.height * image.width;  // than the pixels of the largest value
    int most = 255;
    while (most > 0 && counts[most] == 0) --most;
    others -= counts[most];
    const int64_t step = others / 255;
    ByteTable table;
    int64_t before = step / 2;
    for (int i = 0; i < 256; ++i) {
      table[i] = static_cast<uint8_t>(step > 0 ? std::min<int64_t>(before / step, 255) : i);
      before += counts[i];
    }
    return table;
  });
}

void solarize(float threshold, Image& image) {
  change_values(image, [&](int i) {
    return static_cast<uint8_t>(static_cast<float>(i) < threshold ? i : 255 - i);
  });
}

void posterize(int bits, Image& image) {
  const int kept = 0xff << (8 - bits);
  change_values(image, [&](int i) { return static_cast<uint8_t>(i & kept); });
}

void change_sharpness(float factor, Image& image) {
  const std::vector<uint8_t> old = image.pixels;
  const int64_t channels = image.channels, line = image.width * channels;
  for (int64_t y = 1; y + 1 < image.height; ++y) {
    for (int64_t x = channels; x < line - channels; ++x) {
      const uint8_t* const at = old.data() + y * line + x;
      int sum = 4 * *at;
      for (const int64_t row : {-line, int64_t{0}, line})
        sum += at[row - channels] + at[row] + at[row + channels];
      const int smooth = (2 * sum + 13) / 26;
      image.pixels[y * line + x] = blend(smooth, *at, factor);
    }
  }
}

void blur(float deviation, Image& image) {
  // A deviation this small leaves the neighbours no weight, and its square may be 0.
  constexpr float kLeast = 0.05f;
  if (deviation < kLeast) return;
  const auto radius = std::max<int64_t>(1, std::lround(3 * deviation));
  std::vector<float> weights;
  float sum = 0;
  for (int64_t i = -radius; i <= radius; ++i) {
    const float distance = static_cast<float>(i) / deviation;
    weights.push_back(std::exp(-distance * distance / 2));
    sum += weights.back();
  }
  for (float& weight : weights) weight /= sum;

  const int64_t channels = image.channels, line = image.width * channels;
  std::vector<float> row(static_cast<size_t>(line + 2 * radius * channels)), mixed(line);
  const std::vector<uint8_t> old = image.pixels;
  for (int64_t y = 0; y < image.height; ++y) {
    std::fill(mixed.begin(), mixed.end(), 0.f);
    for (int64_t i = -radius; i <= radius; ++i) {
      const uint8_t* const from =
          old.data() + std::clamp<int64_t>(y + i, 0, image.height - 1) * line;
      const float weight = weights[i + radius];
      for (int64_t x = 0; x < line; ++x) mixed[x] += weight * static_cast<float>(from[x]);
    }
    // The row with its last pixels repeated on both sides.
    for (int64_t x = 0; x < static_cast<int64_t>(row.size()); ++x) {
      const int64_t pixel = std::clamp<int64_t>(x / channels - radius, 0, image.width - 1);
      row[x] = mixed[pixel * channels + x % channels];
    }
    std::fill(mixed.begin(), mixed.end(), 0.5f);
    for (int64_t i = 0; i <= 2 * radius; ++i) {
      const float* const from = row.data() + i * channels;
      const float weight = weights[i];
      for (int64_t x = 0; x < line; ++x) mixed[x] += weight * from[x];
    }
    for (int64_t x = 0; x < line; ++x)
      image.pixels[y * line + x] = static_cast<uint8_t>(std::min(mixed[x], 255.f));
  }
}

void add_gaussian_noise(float deviation, const Random& random, Image& image) {
  const std::vector<float>& normal = normal_numbers();
  const size_t count = image.pixels.size();
  for (size_t i = 0; i < count; i += 8) {
    const Random::Four words = random.four(i / 8);
    for (size_t k = 0; k < std::min<size_t>(8, count - i); ++k) {
      const uint32_t half = words.v[k / 2] >> (k % 2 * 16) & 0xffff;
      const float value =
          static_cast<float>(image.pixels[i + k]) + deviation * normal[half >> (16 - kNormalBits)];
      image.pixels[i + k] = static_cast<uint8_t>(std::clamp(value + 0.5f, 0.f, 255.f));
    }
  }
}

}  // namespace crema
