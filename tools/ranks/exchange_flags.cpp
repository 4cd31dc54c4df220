#include "tools/ranks/exchange_flags.h"

#include <algorithm>

#include "tools/flags/flags.h"
#include "tools/flags/numbers_of.h"

namespace crema {

ExchangeOptions exchange_of_flags() {
  ExchangeOptions options;
  options.wire = wire_named(FLAGS_wire);
  if (FLAGS_buckets.empty()) return options;
  const std::vector<double> sizes = numbers_of("buckets", FLAGS_buckets, 3, 0.001);
  const auto bytes = [](double mebibytes) { return std::llround(mebibytes * (1 << 20)); };
  BucketSizes& buckets = options.buckets.emplace();
  buckets.others = bytes(sizes[sizes.size() > 1 ? 1 : 0]);
  buckets.first = sizes.size() > 1 ? bytes(sizes[0])
                                   : std::min(buckets.others, bucket_sizes(Device::cpu).first);
  if (sizes.size() > 2) buckets.last = bytes(sizes[2]);
  return options;
}

}  // namespace crema
