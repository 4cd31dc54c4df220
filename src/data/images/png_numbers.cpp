#include "data/images/png_numbers.h"

#include <zlib.h>

#include <algorithm>
#include <cstdlib>

#include "base/error.h"

namespace crema {
namespace {

constexpr std::string_view kSignature("\x89PNG\r\n\x1a\n", 8);
constexpr const char* kDamaged = "the PNG is cut off or damaged";

uint32_t big_endian(std::string_view bytes, size_t at) {
  require(at + 4 <= bytes.size(), kDamaged);
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<uint8_t>(bytes[at + i]);
  return value;
}

struct PngHeader {
  int64_t width = 0, height = 0;
  int bits = 0;
  size_t row() const { return static_cast<size_t>((width * bits + 7) / 8); }
};

PngHeader read_header(std::string_view chunk) {
  constexpr int kGray = 0, kIndexed = 3;
  require(chunk.size() >= 13, kDamaged);
  const PngHeader header{big_endian(chunk, 0), big_endian(chunk, 4),
                         static_cast<uint8_t>(chunk[8])};
  const int kind = static_cast<uint8_t>(chunk[9]);
  if (kind != kGray && kind != kIndexed)
    fail("the label image has colours; it must be grey or indexed, with a class as each pixel");
  require(header.bits <= 8, "the label image has ", header.bits,
          " bits a pixel, but at most 8 are "
          "expected");
  require(header.bits == 1 || header.bits == 2 || header.bits == 4 || header.bits == 8, kDamaged);
  require(chunk[12] == 0, "the PNG is interlaced; store it without");
  require(header.width > 0 && header.height > 0 && header.height <= kMaxPixels / header.width,
          "the PNG says that it is ", header.height, "x", header.width);
  return header;
}

// As many bytes as the image has.
std::string inflated(const std::string& packed, size_t size) {
  std::string bytes(size, '\0');
  uLongf have = static_cast<uLongf>(size);
  const int result =
      uncompress(reinterpret_cast<Bytef*>(bytes.data()), &have,
                 reinterpret_cast<const Bytef*>(packed.data()), static_cast<uLong>(packed.size()));
  // More than the image needs is no harm.
  require((result == Z_OK || result == Z_BUF_ERROR) && have == size, kDamaged);
  return bytes;
}

int nearest(int left, int above, int corner) {
  const int guess = left + above - corner;
  const int to_left = std::abs(guess - left), to_above = std::abs(guess - above),
            to_corner = std::abs(guess - corner);
  if (to_left <= to_above && to_left <= to_corner) return left;
  return to_above <= to_corner ? above : corner;
}

// For pixels of at most a byte, the left neighbour is one byte before. `above`: null in the first
// row.
void undo_filter(int filter, const uint8_t* above, size_t size, uint8_t* row) {
  for (size_t i = 0; i < size; ++i) {
    const int left = i > 0 ? row[i - 1] : 0, over = above ? above[i] : 0,
              corner = i > 0 && above ? above[i - 1] : 0;
    int predicted = 0;
    if (filter == 1) predicted = left;
    if (filter == 2) predicted = over;
    if (filter == 3) predicted = (left + over) / 2;
    if (filter == 4) predicted = nearest(left, over, corner);
    row[i] = static_cast<uint8_t>(row[i] + predicted);
  }
}

}  // namespace

Image decode_png_numbers(std::string_view file) {
  require(
      file.substr(0, kSignature.size()) == kSignature,
      "it is no PNG file, which label images must be, because they are read as they are stored");
  PngHeader header;
  std::string packed;
  for (size_t at = kSignature.size(); at < file.size();) {
    const size_t size = big_endian(file, at);
    const std::string_view kind = file.substr(at + 4, 4);
    if (kind == "IEND") break;
    require(size <= file.size() && at + 12 + size <= file.size(), kDamaged);
    const std::string_view content = file.substr(at + 8, size);
    if (kind == "IHDR") header = read_header(content);
    if (kind == "IDAT") packed += content;
    at += 12 + size;
  }
  require(header.width > 0, kDamaged);
  const size_t row = header.row();
  std::string bytes = inflated(packed, (row + 1) * static_cast<size_t>(header.height));
  Image image{1, header.height, header.width, {}};
  image.pixels.resize(static_cast<size_t>(header.height * header.width));
  const uint8_t* above = nullptr;
  auto* to = image.pixels.data();
  for (int64_t y = 0; y < header.height; ++y) {
    auto* filtered = reinterpret_cast<uint8_t*>(bytes.data()) + static_cast<size_t>(y) * (row + 1);
    require(filtered[0] <= 4, kDamaged);
    undo_filter(filtered[0], above, row, filtered + 1);
    above = filtered + 1;
    for (int64_t x = 0; x < header.width; ++x) {
      const int64_t bit = x * header.bits;
      const int shift = static_cast<int>(8 - header.bits - bit % 8);
      *to++ = static_cast<uint8_t>((above[bit / 8] >> shift) & ((1 << header.bits) - 1));
    }
  }
  return image;
}

}  // namespace crema
