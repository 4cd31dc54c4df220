// Checksum: a 64-bit hash that detects damage and mix-ups, not tampering: FNV-1a over words of
// eight bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace crema {

class Checksum {
 public:
  Checksum& add(const void* bytes, size_t count) {
    const char* at = static_cast<const char*>(bytes);
    for (; count >= 8; at += 8, count -= 8) {
      uint64_t word;
      std::memcpy(&word, at, 8);
      mix_in(word);
    }
    for (; count > 0; ++at, --count) mix_in(static_cast<unsigned char>(*at));
    return *this;
  }
  uint64_t value() const { return hash_; }

 private:
  void mix_in(uint64_t word) {
    hash_ = (hash_ ^ word) * 0x100000001B3ull;
    hash_ ^= hash_ >> 29;
  }
  uint64_t hash_ = 0xCBF29CE484222325ull;
};

}  // namespace crema
