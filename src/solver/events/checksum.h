// Checksum: a 64-bit hash that detects damage and mix-ups, not tampering: FNV-1a over words of
// eight bytes; and the hashes of nets and weights that are made with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "net/net.h"
#include "net/weights/weights.h"

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

// A fingerprint of the names and shapes of a net's learned blobs.
std::string fingerprint_of(const Graph& graph);
// A hash of their values.
uint64_t weights_checksum(Net& net);
uint64_t weights_checksum(Context& context, const WeightsContent& content);
// A hash of each parameter, made where it is; see weights_hashes().
std::vector<uint64_t> hashes_of_parameters(const Net& net);

}  // namespace crema
