#include "tools/ranks/exchange_flags.h"

#include <algorithm>

#include "tools/flags.h"
#include "tools/numbers_of.h"

namespace crema {

ExchangeOptions exchange_of_flags() {
  ExchangeOptions options;
  options.wire = wire_named(FLAGS_wire);
  if (FLAGS_buckets.empty()) return options;
  const std::vector<double> sizes = numbers_of("buckets", FLAGS_buckets, 2, 0.001);
  const auto bytes = [](double mebibytes) { return std::llround(mebibytes * (1 << 20)); };
  const int64_t others = bytes(sizes.back());
  options.buckets = BucketBytes{
      sizes.size() == 2 ? bytes(sizes[0]) : std::min(others, bucket_bytes(Device::cpu).first),
      others};
  return options;
}

}  // namespace crema
