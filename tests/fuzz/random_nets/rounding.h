// How far results may be apart. Nothing here is tuned: the effect of rounding on a net is measured.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fuzz/random_nets/trial.h"

namespace crema::tests {

struct Mismatch {
  std::string blob;
  size_t index = 0;  // of the element that differs most
  double value = 0, expected = 0;
  // Euclidean, over the blob.
  double difference = 0, tolerance = 0, norm = 0;
  std::string str() const;
};

// The first blob whose bits differ, among those that both have.
std::optional<Mismatch> different_bits(const Outcome& seen, const Outcome& expected);

class Rounding {
 public:
  explicit Rounding(const RandomNet& net) : net_(net) {}

  // In float64, each layer for itself, by the plain kernels.
  const Outcome& exact();
  // Float32 (unit 2^-24) and what computes with a larger unit: the results may be further from the
  // exact ones than those of the plain kernels in float32, and than what noise of the size of the
  // unit in data and weights makes of the exact ones, but only by a factor.
  std::optional<Mismatch> too_far(const Outcome& seen, double unit);
  // Whether every excessive difference may be because a ReLU or a maximum has decided the other
  // way: noise in data and weights makes the same blobs jump as far.
  bool explained_by_jumps(const Outcome& seen, double unit);
  static constexpr double kFloat32 = 1.0 / (1 << 24);
  TypeCounts planned;  // the layers of plans that were compared

 private:
  struct Noisy {
    Outcome up, down;
  };
  const std::vector<Noisy>& noisy();
  // In float32, with noise of its unit: the same rounding at other values.
  const std::vector<Outcome>& rounded();
  const std::vector<Outcome>& noisy_by(double unit);
  bool explained_by_noise(const Outcome& seen, double unit);
  std::vector<Mismatch> all_too_far(const Outcome& seen, double unit, bool with_noise);

  const RandomNet& net_;
  Outcome exact_, plain_;
  std::vector<Noisy> noisy_;
  std::vector<Outcome> rounded_;
  double unit_ = 0;
  std::vector<Outcome> noisy_by_unit_;
};

}  // namespace crema::tests
