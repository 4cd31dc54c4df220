#include "kernels/norm/batch_norm_ranks.h"

#include "base/error.h"
#include "device/communicator.h"
#include "device/parallel.h"
#include "kernels/norm/batch_norm_kernels.h"
#include "tensor/element.h"
#include "tensor/on.h"

namespace crema {
namespace {

Communicator& world(const Context& context) {
  require(context.world() != nullptr, "batch normalization over ranks needs ranks: set_world()");
  return *context.world();
}

// all: the values of each rank, one rank after the other.
template <typename T>
struct Merge {
  T* all;
  int64_t channels;
  int ranks;
  StoredStatistics<T> stored;
  T *mean, *inverse;
  CREMA_HD void operator()(int64_t c) const {
    double count = 0, middle = 0, squares = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const RankValues<T> own{all + rank * RankValues<T>::count(channels), channels};
      const double more = own.each();
      if (more == 0) continue;
      const double apart = own.first(c) - middle, total = count + more;
      middle += apart * more / total;
      squares += own.second(c) + apart * apart * count * more / total;
      count = total;
    }
    const double variance = count > 0 ? squares / count : 0;
    mean[c] = static_cast<T>(middle);
    inverse[c] = static_cast<T>(1 / sqrt(variance + stored.eps));
    stored.add(c, mean[c], variance, count);
  }
};

}  // namespace

size_t ranks_bytes(const Context& context, const ChannelView& view) {
  return context.ranks() * RankValues<double>::count(view.channels) * sizeof(double);
}

void merge_statistics(Context& context, const BatchNormCase& c,
                      const BatchNormParameters& parameters, const BatchNormSaved& saved,
                      const Tensor& workspace) {
  const int64_t channels = c.view.channels;
  void* const memory = ranks_memory(c.view, workspace);
  const DType dtype = saved.mean.dtype();
  world(context).share_parts(context, memory, RankValues<float>::count(channels),
                             element_of(dtype));
  on(saved.mean, [&]<typename T>() {
    parallel_for(context, channels,
                 Merge<T>{static_cast<T*>(memory), channels, context.ranks(),
                          StoredStatistics<T>(c, parameters), saved.mean.data<T>(),
                          saved.inverse.data<T>()});
  });
}

void sum_over_ranks(Context& context, const ChannelView& view, DType dtype,
                    const Tensor& workspace) {
  world(context).sum(context, ranks_memory(view, workspace),
                     RankValues<float>::count(view.channels), element_of(dtype));
}

}  // namespace crema
