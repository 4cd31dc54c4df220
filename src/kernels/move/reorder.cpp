#include "kernels/move/reorder.h"

#include <algorithm>
#include <cassert>

#include "kernels/move/reorder_kernels.h"

namespace crema {
namespace {

// A view of a Format::points matrix as what it really is: rows x channels x points.
Tensor as_images(const Tensor& matrix, int64_t points) {
  const Shape& shape = matrix.shape();
  return matrix.reshaped({shape[0], shape[1] / points, points}, matrix.format().points > 0
                                                                    ? Format::channels_last()
                                                                    : Format::row_major());
}

// Row-major to channels-last transposes the channels x points matrix of each image; the other
// direction transposes it back.
Refusal reorder_by_transpose(Context&, const Tensor& from, const Tensor& to) {
  if (from.format().order == Order::blocked || to.format().order == Order::blocked)
    return "for row-major and channels-last only";
  assert(from.dtype() == to.dtype());
  const Shape& shape = from.shape();
  const int64_t channels = shape[1], points = shape.count(2);
  const bool to_last = to.format().order == Order::channels_last;
  transpose(from.raw(), to.raw(), shape[0], to_last ? channels : points,
            to_last ? points : channels, size_of(from.dtype()));
  return nullptr;
}

REGISTER_KERNEL(reorder_kernels, "transpose", RunsOn::cpu, 20, reorder_by_transpose);

}  // namespace

constinit decltype(reorder_kernels) reorder_kernels("reordering");

void reorder(Context& context, const Tensor& from, const Tensor& to) {
  assert(from.shape() == to.shape());
  if (from.format().points != to.format().points) {
    if (from.format().points > 0 && to.format().points > 0) {  // layers of two image sizes share it
      const Tensor plain(context, from.shape(), from.dtype());
      reorder(context, from, plain);
      return reorder(context, plain, to);
    }
    const int64_t points = std::max(from.format().points, to.format().points);
    return reorder(context, as_images(from, points), as_images(to, points));
  }
  const Shape& shape = from.shape();
  const bool alike = same_layout(from.format(), to.format(), shape);
  if (alike && from.dtype() == to.dtype()) return copy(context, from, to);
  reorder_kernels.run(context, from, to);
}

}  // namespace crema
