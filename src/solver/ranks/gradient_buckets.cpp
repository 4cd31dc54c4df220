#include "solver/ranks/gradient_buckets.h"

#include <algorithm>

#include "base/error.h"

namespace crema {

namespace {

constexpr int64_t kAlignment = 16;  // of parameters in the arena: whole vectors of any kernel

}  // namespace

std::vector<GradientBucket> gradient_buckets(const std::vector<GradientRange>& ranges,
                                             const BucketSizes& sizes) {
  require(sizes.first > 0 && sizes.others > 0 && sizes.first % kAlignment == 0 &&
              sizes.others % kAlignment == 0,
          "buckets of ", sizes.first, " and ", sizes.others, " elements: expected multiples of ",
          kAlignment);
  // Where the last bucket ends: 0 if already its first parameter is too large.
  int64_t last_end = 0, last_count = 0;
  for (const GradientRange& range : ranges) {
    if (range.node < 0) continue;
    last_count += range.count;
    if (last_count > sizes.last) break;
    last_end = range.first + range.count;
  }
  std::vector<GradientBucket> buckets;
  GradientBucket open;  // grows towards the arena's start
  const auto limit = [&] { return buckets.empty() ? sizes.first : sizes.others; };
  const auto close = [&] {
    if (open.count > 0) buckets.push_back(open);
    open = {};
  };
  for (auto range = ranges.rbegin(); range != ranges.rend(); ++range) {
    if (range->node < 0 || range->count == 0) continue;
    require(range->first % kAlignment == 0, "a gradient begins at element ", range->first,
            ": expected a multiple of ", kAlignment);
    int64_t end = range->first + (range->count + kAlignment - 1) / kAlignment * kAlignment;
    if (open.count > 0) {
      const int64_t gap = open.first - end;
      const bool begins_last = range->first < last_end && open.first >= last_end;
      if (begins_last || gap > sizes.others / 8 || gap >= limit() - open.count) {
        close();
      } else {
        end = open.first;
      }
    }
    while (end > range->first) {
      const int64_t added = std::min(end - range->first, limit() - open.count);
      end -= added;
      open = {end, open.count + added,
              open.count > 0 ? std::min(open.node, range->node) : range->node};
      if (open.count == limit()) close();
    }
  }
  close();
  std::stable_sort(
      buckets.begin(), buckets.end(),
      [](const GradientBucket& a, const GradientBucket& b) { return a.node > b.node; });
  return buckets;
}

std::vector<GradientRange> gradient_ranges(Net& net) {
  std::vector<GradientRange> ranges;
  const std::vector<int> nodes = net.final_nodes();
  for (size_t i = 0; i < nodes.size(); ++i)
    ranges.push_back(
        {net.parameter_offset(static_cast<int>(i)), net.parameters()[i].diff.elements(), nodes[i]});
  return ranges;
}

std::vector<GradientBucket> gradient_buckets(Net& net, const BucketSizes& bytes) {
  const auto elements_of = [&](int64_t size) {
    const int64_t elements = size / static_cast<int64_t>(size_of(net.options().dtype));
    return std::max(kAlignment, elements / kAlignment * kAlignment);
  };
  return gradient_buckets(
      gradient_ranges(net),
      {elements_of(bytes.first), elements_of(bytes.others), elements_of(bytes.last)});
}

}  // namespace crema
