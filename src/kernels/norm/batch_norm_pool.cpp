#include "kernels/norm/batch_norm_pool.h"

#include "kernels/norm/batch_norm_bodies.h"

namespace crema {

std::unique_ptr<BatchNormPool> make_batch_norm_pool([[maybe_unused]] const Context& context,
                                                    [[maybe_unused]] const BatchNormCase& c,
                                                    [[maybe_unused]] const PoolWindow& window,
                                                    [[maybe_unused]] DType dtype) {
#ifdef CREMA_CUDA
  const int64_t count = c.view.count();
  if (batch_norm_takes_packs(context, c, dtype) && count > 0 && count < (int64_t{1} << 31))
    return make_batch_norm_pool_gpu(c, window);
#endif
  return nullptr;
}

}  // namespace crema
