#include "kernels/reorder.h"

#include <cassert>

#include "kernels/reorder_bodies.h"

namespace crema {

void reorder(Context& context, const Tensor& from, const Tensor& to) {
  assert(from.shape() == to.shape() && from.dtype() == to.dtype());
  const Shape& shape = from.shape();
  if (same_layout(from.format(), to.format(), shape)) return copy(context, from, to);
  const bool blocked = from.format().order == Order::blocked || to.format().order == Order::blocked;
  if (context.device() == Device::cpu) {
    if (!blocked) {
      // Row-major to channels-last turns the matrix channels x points of each image, and back.
      const int64_t channels = shape[1], points = shape.count(2);
      const bool to_last = to.format().order == Order::channels_last;
      return transpose(from.raw(), to.raw(), shape[0], to_last ? channels : points,
                       to_last ? points : channels, size_of(from.dtype()));
    }
#ifdef CREMA_ONEDNN
    if (reorder_onednn(from, to)) return;
#endif
  }
  if (to.elements() != to.count()) zero(context, to);
  reorder_elements(context, from, to);
}

}  // namespace crema
