// Measures a device's peak rates, and how close work comes to them.
#pragma once

#include <vector>

#include "device/context.h"
#include "net/plan/work.h"
#include "tensor/precision.h"

namespace crema {

struct Limits {
  double operations = 0;  // per second, of a large GEMM in the given precision
  double bytes = 0;       // per second, to and from memory

  // The same of smaller amounts, which caches hold, in ascending order. The last one is `bytes`.
  struct Bandwidth {
    double amount, bytes;
  };
  std::vector<Bandwidth> bandwidths;
  // For work that moves this many bytes: the rate of a cache that holds them, or of memory. Rates
  // above the geometric mean of the best one and memory's are those of caches.
  double bytes_for(double amount) const;
};

// Takes about two seconds.
Limits measure_limits(Context& context, Precision precision);

// The least time that work can take on a device with these limits: that of its operations or of its
// bytes, whichever is longer.
struct Roofline {
  double seconds = 0;  // 0: it neither computes nor moves anything
  bool arithmetic = false;
};
Roofline roofline_of(const Work& work, const Limits& limits);

}  // namespace crema
