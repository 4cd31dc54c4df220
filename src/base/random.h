// Counter-based random numbers (Philox4x32-10; Salmon et al., "Parallel random numbers: as easy as
// 1, 2, 3", SC'11). A number is a pure function of (seed, stream, index): order, thread count,
// device and resumption cannot change it.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/host_device.h"

namespace crema {

struct Random {
  uint64_t seed = 0;
  uint64_t stream = 0;  // the consumer: a layer, a filler, an epoch

  struct Four {
    uint32_t v[4];
  };

  // Four independent 32-bit words per index.
  CREMA_HD Four four(uint64_t index) const {
    uint32_t c0 = static_cast<uint32_t>(index), c1 = static_cast<uint32_t>(index >> 32);
    uint32_t c2 = static_cast<uint32_t>(stream), c3 = static_cast<uint32_t>(stream >> 32);
    uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
    for (int round = 0; round < 10; ++round) {
      const uint64_t p0 = 0xD2511F53ull * c0, p1 = 0xCD9E8D57ull * c2;
      const uint32_t n0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0,
                     n2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
      c1 = static_cast<uint32_t>(p1);
      c3 = static_cast<uint32_t>(p0);
      c0 = n0;
      c2 = n2;
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    return {{c0, c1, c2, c3}};
  }

  CREMA_HD uint32_t word(uint64_t index) const { return four(index / 4).v[index % 4]; }
  CREMA_HD uint64_t word64(uint64_t index) const {
    const Four f = four(index);
    return (static_cast<uint64_t>(f.v[0]) << 32) | f.v[1];
  }
  // Uniform in [0, 1), 24 bits.
  CREMA_HD float uniform(uint64_t index) const {
    return static_cast<float>(word(index) >> 8) * 0x1p-24f;
  }
  // N(0, 1) by the Box-Muller transform.
  CREMA_HD float normal(uint64_t index) const {
    const Four f = four(index / 2);
    const int pair = static_cast<int>(index % 2) * 2;
    const double u = (f.v[pair] + 1.0) * 0x1p-32, v = f.v[pair + 1] * 0x1p-32;
    return static_cast<float>(sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v));
  }
};

// Combines several small numbers (layer, pass, purpose) into a stream number.
CREMA_HD inline uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t x = a * 0x9E3779B97F4A7C15ull + b + 0x632BE59BD9B4E019ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

// The random numbers of one layer in one pass. A pass that a CUDA graph replays has its number in
// GPU memory.
struct PassRandom {
  Random fixed;
  uint64_t who = 0;
  const uint64_t* live_pass = nullptr;

  CREMA_HD Random get() const {
#ifdef __CUDA_ARCH__
    if (live_pass) return {fixed.seed, mix(who, *live_pass)};
#endif
    return fixed;
  }
};

}  // namespace crema
