// The ranges from which the changes of transform_param { augment } are drawn.
#pragma once

#include <optional>

#include "data/transforms/rng.h"
#include "proto/data.pb.h"

namespace crema {

// The meaning of an AugmentRange in one of its uses.
struct ChangeRange {
  const char* name;    // of the field
  float least, most;   // unless the message gives others
  float lower, upper;  // limits of both
  const char* unit;    // unit of the numbers

  float least_of(const AugmentRange& range) const {
    return range.has_least() ? range.least() : least;
  }
  float most_of(const AugmentRange& range) const { return range.has_most() ? range.most() : most; }
  // None if the change is not applied to this sample.
  std::optional<float> draw(bool given, const AugmentRange& range, Rng& rng) const {
    if (!given || !rng.chance(range.probability())) return std::nullopt;
    return rng.between(least_of(range), most_of(range));
  }
};

constexpr ChangeRange kRotation{"rotate", 0, 15, 0, 180, "degrees"};
constexpr ChangeRange kShear{"shear", 0, 10, 0, 60, "degrees"};
// Corners that move further inwards can make a quadrangle that is not convex.
constexpr ChangeRange kPerspective{"perspective", 0, 0.2f, 0, 0.3f, "shares of a side"};
constexpr ChangeRange kBlur{"blur", 0.1f, 2, 0, 50, "pixels"};
constexpr ChangeRange kJpeg{"jpeg", 30, 95, 1, 100, "qualities"};
constexpr ChangeRange kNoise{"noise", 0, 12, 0, 255, "standard deviations"};

// Error says which number is out of its range.
void check_changes(const AugmentParameter& parameter);

}  // namespace crema
