// Buckets: the contiguous parts of a net's gradient arena that ranks sum one after the other, each
// as soon as backward has finished it. Backward goes from the last layer to the first, so they are
// taken from the arena's end.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "net/net.h"

namespace crema {

// The largest size of the first bucket, of the others and of the last one, in bytes of the arena. On
// CPUs the first is small, so that sending begins early, and the others are large enough that the
// time to begin a transfer hardly counts. On GPUs those that are summed during backward are large
// enough for copy engines (comm/copy_engines.h) and the last one, for which all wait, is small
// (measured with 4 H100s: tests/bench/README.md).
struct BucketSizes {
  int64_t first, others, last = std::numeric_limits<int64_t>::max();
};
constexpr BucketSizes bucket_sizes(Device device) {
  constexpr int64_t kMiB = int64_t{1} << 20;
  return device == Device::gpu ? BucketSizes{32 * kMiB, 32 * kMiB, 4 * kMiB}
                               : BucketSizes{kMiB, 8 * kMiB};
}

// The gradient of one parameter: elements [first, first + count) of the arena. node: after the
// backward of this node of the plan it is final; -1: the parameter has none.
struct GradientRange {
  int64_t first = 0, count = 0;
  int node = -1;
};

// Elements [first, first + count) of the arena, all final after the backward of `node`.
struct GradientBucket {
  int64_t first = 0, count = 0;
  int node = -1;
};

// The buckets in the order in which they become final; nodes run backward from the highest number
// down. `sizes` are elements: `first` and `others` multiples of 16. A parameter that is larger is split.
// The last bucket are the parameters at the arena's start that are no larger than `last` together.
// They cover each range that has a node, up to the next multiple of 16, and also what is between
// such ranges (parameters without a gradient, whose part of the arena is zero) up to an eighth of
// `others`: that costs less than another bucket. Larger gaps, as frozen layers leave, they omit.
// `ranges`: in ascending order, without overlaps; each begins at a multiple of 16.
std::vector<GradientBucket> gradient_buckets(const std::vector<GradientRange>& ranges,
                                             const BucketSizes& sizes);

// The gradients of a net's parameters, in the order of the arena.
std::vector<GradientRange> gradient_ranges(Net& net);

// The buckets of a net. A new plan of the net may finish gradients in another order
// (Net::generation()).
std::vector<GradientBucket> gradient_buckets(Net& net, const BucketSizes& bytes);

}  // namespace crema
