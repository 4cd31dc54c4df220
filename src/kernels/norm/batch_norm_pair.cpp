#include "kernels/norm/batch_norm_pair.h"

#include "kernels/norm/batch_norm_bodies.h"

namespace crema {

std::unique_ptr<BatchNormPair> make_batch_norm_pair([[maybe_unused]] Context& context,
                                                    [[maybe_unused]] const BatchNormCase& c,
                                                    [[maybe_unused]] DType dtype) {
#ifdef CREMA_CUDA
  if (batch_norm_takes_packs(context, c, dtype)) return make_batch_norm_pair_gpu(c);
#endif
  return nullptr;
}

}  // namespace crema
