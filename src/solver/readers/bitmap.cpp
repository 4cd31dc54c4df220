#include "solver/readers/bitmap.h"

#include <algorithm>
#include <cmath>

namespace crema {

namespace {

void put_little_endian(std::vector<uint8_t>& out, uint32_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<uint8_t>(value >> (8 * i)));
}

std::string base64(const std::vector<uint8_t>& bytes) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t have = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = 0;
    for (size_t j = 0; j < 3; ++j) group = (group << 8) | (j < have ? bytes[i + j] : 0u);
    for (size_t j = 0; j < 4; ++j) text += j <= have ? digits[(group >> (18 - 6 * j)) & 63] : '=';
  }
  return text;
}

}  // namespace

std::string picture(const float* values, int channels, int height, int width) {
  const size_t plane = static_cast<size_t>(height) * width;
  std::vector<float> pixels(3 * plane);
  for (size_t i = 0; i < plane; ++i) {
    float mean = 0;
    for (int c = 0; c < channels; ++c) mean += values[c * plane + i] / static_cast<float>(channels);
    for (int c = 0; c < 3; ++c) pixels[3 * i + c] = channels == 3 ? values[c * plane + i] : mean;
  }
  const auto [low, high] = std::minmax_element(pixels.begin(), pixels.end());
  const float base = *low, range = *high > *low ? *high - *low : 1;

  const uint32_t row =
      (3 * static_cast<uint32_t>(width) + 3) / 4 * 4;  // rows are padded to four bytes
  std::vector<uint8_t> bytes = {'B', 'M'};
  put_little_endian(bytes, 54 + row * height, 4);
  put_little_endian(bytes, 0, 4);
  put_little_endian(bytes, 54, 4);  // offset of the pixels
  put_little_endian(bytes, 40, 4);  // size of the second header
  put_little_endian(bytes, width, 4);
  put_little_endian(bytes, height, 4);
  put_little_endian(bytes, 1, 2);
  put_little_endian(bytes, 24, 2);
  bytes.resize(54);
  for (int y = height - 1; y >= 0; --y) {  // bottom row first
    for (int i = 0; i < 3 * width; ++i) {
      const float value = (pixels[3 * static_cast<size_t>(y) * width + i] - base) / range;
      bytes.push_back(static_cast<uint8_t>(std::lround(255 * (std::isfinite(value) ? value : 0))));
    }
    bytes.resize(54 + static_cast<size_t>(row) * (height - y));
  }
  return "data:image/bmp;base64," + base64(bytes);
}

}  // namespace crema
