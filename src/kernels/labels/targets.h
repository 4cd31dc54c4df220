// Targets that must be in a range, such as probabilities, in losses. A target outside of it, or NaN,
// is an Error on the CPU; a GPU records it, like a bad label (kernels/labels/labels.h), until the host
// reads the result.
#pragma once

#include <string>
#include <vector>

#include "kernels/labels/labels.h"

namespace crema {

// For kernels; T is the type of the targets.
template <typename T>
struct TargetBounds {
  T low, high;
  bool whole;  // only integers
  bool ignoring;
  int ignored;

  // What rounding may add: 255 * 0.00392157 is a little more than 1.
  static constexpr T kSlack = T(1e-3);

  CREMA_HD bool is_ignored(T target) const {
    return ignoring && static_cast<int>(target) == ignored;
  }
  // NaN is not in range.
  CREMA_HD bool in_range(T target) const {
    return target >= low - kSlack && target <= high + kSlack;
  }
  CREMA_HD bool has(T target) const {
    return (in_range(target) && (!whole || target == static_cast<T>(static_cast<int>(target)))) ||
           (target == target && is_ignored(target));
  }
};

struct TargetRange {
  double low = 0, high = 1;
  bool whole = false;               // only integers
  std::optional<int> ignored = {};  // targets that are this after rounding towards 0 do not count
  // What the numbers mean and what to do with others, to end the message: "masks of ...".
  std::string advice = {};

  template <typename T>
  TargetBounds<T> bounds() const {
    return {static_cast<T>(low), static_cast<T>(high), whole, ignored.has_value(),
            ignored.value_or(0)};
  }
};

// What to do with masks of 0 and 255 where 0 to 1 is expected.
inline constexpr const char* kScaleMasks =
    "masks of 0 and 255 become 0 and 1 by transform_param { scale: 0.00392157 } in the layer that "
    "reads them, or by a Power layer with that scale behind it";

// CPU: Error for the first target out of range. targets: float or double; each: values per image.
void check_targets(const Tensor& targets, const TargetRange& range, int64_t each);

// The same of values that a layer has copied to the host.
void check_targets(const std::vector<double>& targets, const TargetRange& range, int64_t each);

// Error when the record (LabelNote::kCount numbers) holds a target.
void check_target_note(Context& context, const Tensor& note, const TargetRange& range);

}  // namespace crema
