#include "base/png.h"

#include <zlib.h>

#include <algorithm>

#include "base/error.h"

namespace crema {
namespace {

std::string big_endian(uint64_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 255);
  return bytes;
}

uint64_t png_crc(const std::string& bytes) {
  return crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size()));
}

// Length, type, content, checksum of the last two.
std::string chunk(const std::string& type, const std::string& content) {
  return big_endian(content.size()) + type + content + big_endian(png_crc(type + content));
}

// In the format that zlib writes.
std::string deflated(const std::string& bytes) {
  uLongf size = compressBound(static_cast<uLong>(bytes.size()));
  std::string packed(size, '\0');
  const int result =
      compress2(reinterpret_cast<Bytef*>(packed.data()), &size,
                reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uLong>(bytes.size()), 6);
  require(result == Z_OK, "zlib cannot compress a picture: error ", result);
  packed.resize(size);
  return packed;
}

std::string base64(const std::string& bytes) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t have = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = 0;
    for (size_t j = 0; j < 3; ++j)
      group = (group << 8) | (j < have ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    for (size_t j = 0; j < 4; ++j) text += j <= have ? digits[(group >> (18 - 6 * j)) & 63] : '=';
  }
  return text;
}

}  // namespace

std::string png_of(const Picture& picture) {
  constexpr char kGrey = 0, kColour = 2;
  const size_t row = static_cast<size_t>(picture.width) * picture.channels;
  require(picture.bytes.size() == row * picture.height, "a picture of ", picture.width, " x ",
          picture.height, " x ", picture.channels, " has ", picture.bytes.size(), " bytes");
  // Eight bits a sample, deflate, the only filter method, not interlaced.
  const std::string header = big_endian(picture.width) + big_endian(picture.height) + '\x08' +
                             (picture.channels == 3 ? kColour : kGrey) + std::string(3, '\0');
  std::string rows;
  for (int y = 0; y < picture.height; ++y) {
    rows += '\0';  // stored as it is, not as differences
    rows.append(reinterpret_cast<const char*>(picture.bytes.data()) + y * row, row);
  }
  return "\x89PNG\r\n\x1a\n" + chunk("IHDR", header) + chunk("IDAT", deflated(rows)) +
         chunk("IEND", "");
}

std::string picture_address(const Picture& picture) {
  return "data:image/png;base64," + base64(png_of(picture));
}

}  // namespace crema
