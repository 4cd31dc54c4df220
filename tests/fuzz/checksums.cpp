#include "fuzz/checksums.h"

#include <array>
#include <cstdint>
#include <cstring>

#include "base/strings.h"

namespace crema::tests {
namespace {

// Bit by bit reflected CRC with this polynomial.
uint32_t crc(uint32_t polynomial, const char* bytes, size_t size) {
  uint32_t value = ~uint32_t{0};
  for (size_t i = 0; i < size; ++i) {
    value ^= static_cast<unsigned char>(bytes[i]);
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ (value & 1 ? polynomial : 0);
  }
  return ~value;
}

// CRC-32C, turned and moved as LevelDB stores it.
uint32_t masked(const char* bytes, size_t size) {
  const uint32_t value = crc(0x82f63b78, bytes, size);
  return ((value >> 15) | (value << 17)) + 0xa282ead8;
}

// Consecutive records in blocks of 32 kB: checksum, length, kind, bytes.
void mend_log(std::string& content) {
  constexpr size_t kBlock = 32768, kHeader = 7;
  for (size_t at = 0; at + kHeader <= content.size();) {
    const size_t left = kBlock - at % kBlock;
    if (left < kHeader) {
      at += left;
      continue;
    }
    uint16_t length;
    std::memcpy(&length, content.data() + at + 4, sizeof length);
    if (at + kHeader + length > content.size()) return;
    const uint32_t sum = masked(content.data() + at + 6, length + size_t{1});
    std::memcpy(content.data() + at, &sum, sizeof sum);
    at += kHeader + length;
  }
}

bool read_varint(const std::string& from, size_t* at, uint64_t* value) {
  *value = 0;
  for (int shift = 0; shift < 64 && *at < from.size(); shift += 7) {
    const auto byte = static_cast<unsigned char>(from[(*at)++]);
    *value |= static_cast<uint64_t>(byte & 127) << shift;
    if (byte < 128) return true;
  }
  return false;
}

// A block of a table ends with its kind and the checksum of both.
bool mend_block(std::string& content, uint64_t offset, uint64_t size) {
  if (offset > content.size() || size > content.size() || offset + size + 5 > content.size())
    return false;
  const uint32_t sum = masked(content.data() + offset, size + 1);
  std::memcpy(content.data() + offset + size + 1, &sum, sizeof sum);
  return true;
}

// The footer says where two indexes lie; the entries of the second, where the blocks do.
void mend_table(std::string& content) {
  constexpr size_t kFooter = 48;
  if (content.size() < kFooter) return;
  size_t at = content.size() - kFooter;
  uint64_t offset, size, shared, rest, length;
  if (!read_varint(content, &at, &offset) || !read_varint(content, &at, &size)) return;
  mend_block(content, offset, size);
  if (!read_varint(content, &at, &offset) || !read_varint(content, &at, &size)) return;
  if (!mend_block(content, offset, size)) return;
  for (at = offset; at < offset + size;) {
    if (!read_varint(content, &at, &shared) || !read_varint(content, &at, &rest) ||
        !read_varint(content, &at, &length))
      return;
    if (rest > content.size() || length > content.size()) return;
    size_t value = at + rest;
    at = value + length;
    uint64_t block, bytes;
    if (read_varint(content, &value, &block) && read_varint(content, &value, &bytes))
      mend_block(content, block, bytes);
  }
}

}  // namespace

void mend_leveldb(const std::string& name, std::string& content) {
  if (ends_with(name, ".log") || starts_with(name, "MANIFEST")) mend_log(content);
  if (ends_with(name, ".ldb") || ends_with(name, ".sst")) mend_table(content);
}

void mend_png(std::string& content) {
  constexpr size_t kSignature = 8, kAround = 12;
  for (size_t at = kSignature; at + kAround <= content.size();) {
    uint32_t length;
    std::memcpy(&length, content.data() + at, sizeof length);
    length = __builtin_bswap32(length);
    if (length > content.size() - at - kAround) return;
    const uint32_t sum =
        __builtin_bswap32(crc(0xedb88320, content.data() + at + 4, length + size_t{4}));
    std::memcpy(content.data() + at + 8 + length, &sum, sizeof sum);
    at += kAround + length;
  }
}

}  // namespace crema::tests
