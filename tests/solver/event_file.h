// Reads the files of event readers with independent code: TensorBoard's files and PNG.
#pragma once

#include <zlib.h>

#include <cstring>
#include <string>
#include <vector>

#include "proto/tensorboard.pb.h"
#include "solver/events/events.h"
#include "support.h"

namespace crema::tests {

// CRC-32C, bit by bit.
inline uint32_t crc32c(const std::string& bytes) {
  uint32_t crc = 0xffffffff;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc & 1 ? crc >> 1 ^ 0x82f63b78 : crc >> 1;
  }
  return ~crc;
}

template <typename Number>
Number number_at(const std::string& bytes, size_t at) {
  Number number = 0;
  require(at + sizeof number <= bytes.size(), "the file ends within a record");
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

inline void expect_checksum(const std::string& bytes, uint32_t masked) {
  const uint32_t turned = masked - 0xa282ead8;
  EXPECT_EQ(crc32c(bytes), turned >> 17 | turned << 15);
}

inline std::vector<tensorboard::Event> records_of_file(const std::string& path) {
  const std::string bytes = read_file(path);
  std::vector<tensorboard::Event> records;
  for (size_t at = 0; at < bytes.size();) {
    const auto length = number_at<uint64_t>(bytes, at);
    expect_checksum(bytes.substr(at, 8), number_at<uint32_t>(bytes, at + 8));
    const std::string content = bytes.substr(at + 12, length);
    expect_checksum(content, number_at<uint32_t>(bytes, at + 12 + length));
    records.emplace_back();
    EXPECT_TRUE(records.back().ParseFromString(content));
    at += length + 16;
  }
  return records;
}

// A picture without its caption, from a PNG file as readers/png.cpp writes it: one IDAT chunk, rows
// without a filter.
inline Picture picture_of_png(const std::string& png) {
  require(png.substr(0, 8) == "\x89PNG\r\n\x1a\n", "not a PNG file");
  const auto big = [&](size_t at) {
    uint32_t number = 0;
    for (size_t i = 0; i < 4; ++i)
      number = number << 8 | static_cast<unsigned char>(png.at(at + i));
    return number;
  };
  Picture picture;
  std::string packed, types;
  for (size_t at = 8; at < png.size();) {
    const size_t length = big(at);
    const std::string type = png.substr(at + 4, 4), content = png.substr(at + 8, length);
    const auto crc = crc32(0, reinterpret_cast<const Bytef*>(png.data()) + at + 4,
                           static_cast<uInt>(length + 4));
    EXPECT_EQ(crc, big(at + 8 + length)) << type;
    types += type + " ";
    if (type == "IHDR") {
      picture.width = static_cast<int>(big(at + 8));
      picture.height = static_cast<int>(big(at + 12));
      EXPECT_EQ(content[8], 8) << "bits";
      picture.channels = content[9] == 2 ? 3 : 1;
    }
    if (type == "IDAT") packed += content;
    at += length + 12;
  }
  EXPECT_EQ(types, "IHDR IDAT IEND ");
  const size_t row = static_cast<size_t>(picture.width) * picture.channels;
  std::string rows((row + 1) * picture.height, '\0');
  uLongf size = rows.size();
  EXPECT_EQ(uncompress(reinterpret_cast<Bytef*>(rows.data()), &size,
                       reinterpret_cast<const Bytef*>(packed.data()), packed.size()),
            Z_OK);
  EXPECT_EQ(size, rows.size());
  for (int y = 0; y < picture.height; ++y) {
    EXPECT_EQ(rows[y * (row + 1)], 0) << "filter";
    for (size_t i = 0; i < row; ++i)
      picture.bytes.push_back(static_cast<uint8_t>(rows[y * (row + 1) + 1 + i]));
  }
  return picture;
}

}  // namespace crema::tests
