#include "device/communicator.h"

#include <cstring>

#include "base/error.h"

namespace crema {

BatchShare Communicator::share_of(int64_t batch_size) const {
  if (!divides_batches) return {rank * batch_size, batch_size, ranks * batch_size};
  require(batch_size >= ranks, "a batch of ", batch_size, " cannot be divided among ", ranks,
          " ranks; give each a batch of its own with -batch_mode per_gpu, or start fewer ranks");
  const int64_t first = batch_size * rank / ranks, end = batch_size * (rank + 1) / ranks;
  return {first, end - first, batch_size};
}

void Communicator::sum(std::span<double> values) {
  const size_t bytes = values.size_bytes();
  const std::vector<std::string> all =
      gather({reinterpret_cast<const char*>(values.data()), bytes});
  std::fill(values.begin(), values.end(), 0);
  for (size_t i = 0; i < all.size(); ++i) {
    require(all[i].size() == bytes, "rank ", i, " sums ", all[i].size(), " bytes, but rank ", rank,
            " sums ", bytes, ": the ranks do different things");
    for (size_t k = 0; k < values.size(); ++k) {
      double value;
      std::memcpy(&value, all[i].data() + k * sizeof value, sizeof value);
      values[k] += value;
    }
  }
}

}  // namespace crema
