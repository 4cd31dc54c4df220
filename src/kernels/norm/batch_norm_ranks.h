// Batch normalization over ranks: statistics, and sums of the gradient, of the elements that all
// ranks have. Each pass is one call of the communicator, in the order of the context's queue:
// every rank must make the same passes in the same order.
//
// Forward merges the ranks' means and sums of squared differences from these, pairwise and weighted
// by their numbers of elements (Chan, Golub and LeVeque, "Algorithms for Computing the Sample
// Variance", 1983): a mean far from 0 costs no digits. All ranks merge the same numbers in the same
// order, so statistics are the same bits on each. Backward sums g and g * h.
#pragma once

#include "base/host_device.h"
#include "device/context.h"
#include "kernels/norm/batch_norm.h"

namespace crema {

// Doubles per channel at the front of a batch normalization's workspace. What the ranks exchange
// follows them.
constexpr int64_t kChannelDoubles = 7;
inline void* ranks_memory(const ChannelView& view, const Tensor& workspace) {
  return static_cast<double*>(workspace.raw()) + kChannelDoubles * view.channels;
}
// Its bytes.
size_t ranks_bytes(const Context& context, const ChannelView& view);

// A rank's values: two per channel, one after the other, and the number of elements per channel.
template <typename T>
struct RankValues {
  T* values = nullptr;
  int64_t channels = 0;

  CREMA_HD static int64_t count(int64_t channels) { return 2 * channels + 1; }
  CREMA_HD void write(int64_t c, double first, double second, double each) const {
    values[c] = static_cast<T>(first);
    values[channels + c] = static_cast<T>(second);
    if (c == 0) values[2 * channels] = static_cast<T>(each);
  }
  CREMA_HD T first(int64_t c) const { return values[c]; }
  CREMA_HD T second(int64_t c) const { return values[channels + c]; }
  CREMA_HD T each() const { return values[2 * channels]; }
};

// Where this rank writes its mean and its sum of squared differences from that, for forward. T:
// float or double, that of mean and inverse.
template <typename T>
RankValues<T> own_statistics(const Context& context, const ChannelView& view,
                             const Tensor& workspace) {
  T* const all = static_cast<T*>(ranks_memory(view, workspace));
  return {all + context.rank() * RankValues<T>::count(view.channels), view.channels};
}
// Exchanges them and writes to `saved` the mean and inverse of all; updates the stored statistics.
void merge_statistics(Context& context, const BatchNormCase& c,
                      const BatchNormParameters& parameters, const BatchNormSaved& saved,
                      const Tensor& workspace);

// Where this rank writes its sums of g and g * h, for backward; sum_over_ranks() turns them into
// those of all. dtype: that of T.
template <typename T>
RankValues<T> rank_sums(const ChannelView& view, const Tensor& workspace) {
  return {static_cast<T*>(ranks_memory(view, workspace)), view.channels};
}
void sum_over_ranks(Context& context, const ChannelView& view, DType dtype,
                    const Tensor& workspace);

}  // namespace crema
