// SHA-256 (FIPS 180-4): checksums that two machines can compare.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace crema {

class Sha256 {
 public:
  Sha256& add(std::string_view bytes);
  using Digest = std::array<uint8_t, 32>;
  // The hash of everything added so far; add nothing afterwards.
  Digest digest();

 private:
  void block(const uint8_t* bytes);

  std::array<uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> rest_{};  // bytes that fill no block yet
  size_t in_rest_ = 0;
  uint64_t count_ = 0;  // of all bytes
};

Sha256::Digest sha256(std::string_view bytes);
// "e3b0c442...", as sha256sum prints it.
std::string hexadecimal(const Sha256::Digest& digest);

}  // namespace crema
