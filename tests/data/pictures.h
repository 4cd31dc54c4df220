// Picture files that none of our encoders makes.
#pragma once

#include <string>

#include "data/images/image.h"

namespace crema::tests {

inline std::string from_hex(std::string_view text) {
  std::string bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2)
    bytes.push_back(static_cast<char>(std::stoi(std::string(text.substr(i, 2)), nullptr, 16)));
  return bytes;
}

// 8 x 8 pixels of pure cyan, in the inks of print; written by Pillow.
inline std::string cmyk_jpeg() {
  return from_hex(
      "ffd8ffee000e41646f626500640000000000ffdb004300100b0c0e0c0a100e0d0e1211101318281a181616183123"
      "25"
      "1d283a333d3c3933383740485c4e404457453738506d51575f626768673e4d71797064785c656763ffc000140800"
      "08"
      "0008044311004d11005911004b1100ffc40014000100000000000000000000000000000007ffc400141001000000"
      "00"
      "000000000000000000000000ffda000e0443004d0059004b00003f003f2010080fffd9");
}

// 2 x 1 grey pixels of 16 bits: 0xABCD and 0x1234; written by Pillow.
inline std::string deep_png() {
  return from_hex(
      "89504e470d0a1a0a0000000d494844520000000200000001100000000081d9fc150000000d49444154789c63587d"
      "56"
      "c80400057001bf7f0c520c0000000049454e44ae426082");
}

// EXIF data with the camera's orientation.
inline std::string exif(int orientation, bool little = true) {
  const auto number = [&](int64_t value, int bytes) {
    std::string text;
    for (int i = 0; i < bytes; ++i)
      text.push_back(static_cast<char>(value >> (8 * (little ? i : bytes - 1 - i))));
    return text;
  };
  return (little ? "II" : "MM") + number(42, 2) + number(8, 4) + number(1, 2) + number(0x112, 2) +
         number(3, 2) + number(1, 4) + number(orientation, 2) + number(0, 6);
}

// A JPEG with EXIF data in front of its other segments.
inline std::string with_exif(const std::string& jpeg, int orientation, bool little = true) {
  const std::string data = std::string("Exif\0\0", 6) + exif(orientation, little);
  return jpeg.substr(0, 2) + "\xFF\xE1" + std::string(1, '\0') +
         static_cast<char>(data.size() + 2) + data + jpeg.substr(2);
}

// The same for a PNG.
inline std::string png_with_exif(const std::string& png, int orientation) {
  const std::string chunk = "eXIf" + exif(orientation);
  uint32_t sum = 0xFFFFFFFF;
  for (const char letter : chunk) {
    sum ^= static_cast<unsigned char>(letter);
    for (int i = 0; i < 8; ++i) sum = (sum >> 1) ^ (sum & 1 ? 0xEDB88320 : 0);
  }
  sum = ~sum;
  std::string bytes(3, '\0');
  bytes.push_back(static_cast<char>(chunk.size() - 4));
  bytes += chunk;
  for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(sum >> shift));
  constexpr size_t kBehindHeader = 8 + 25;
  return png.substr(0, kBehindHeader) + bytes + png.substr(kBehindHeader);
}

// Grey, 16 rows of 32 pixels: its quarters are 10, 80 in the upper and 150, 220 in the lower half.
inline Image quarters() {
  Image image{1, 16, 32, {}};
  for (int i = 0; i < 16 * 32; ++i)
    image.pixels.push_back(static_cast<uint8_t>(10 + (i % 32 < 16 ? 0 : 70) + (i < 256 ? 0 : 140)));
  return image;
}

// Its four corners: 10 is 0, 80 is 1, 150 is 2 and 220 is 3.
inline std::string corners(const Image& image) {
  const auto at = [&](int64_t y, int64_t x) {
    const uint8_t value = image.pixels[static_cast<size_t>((y * image.width + x) * image.channels)];
    return static_cast<char>('0' + (value - 10 + 35) / 70);
  };
  const int64_t bottom = image.height - 1, right = image.width - 1;
  return {at(0, 0), at(0, right), at(bottom, 0), at(bottom, right)};
}

}  // namespace crema::tests
