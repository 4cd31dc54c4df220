// Reordering from any format to any other, one index per element.
#include "base/error.h"
#include "device/parallel.h"
#include "kernels/move/reorder_kernels.h"

namespace crema {
namespace {

constexpr int kMaxReorderAxes = 8, kMaxBlocks = 4;

// Format::offset in a form that can be passed to a GPU kernel.
struct Layout {
  int64_t strides[kMaxReorderAxes] = {};
  int64_t block_sizes[kMaxBlocks] = {};
  int block_axes[kMaxBlocks] = {};
  int blocks = 0;

  // Overwrites the coordinates.
  CREMA_HD int64_t offset(int64_t* index, int axes) const {
    int64_t at = 0, stride = 1;
    for (int block = blocks - 1; block >= 0; --block) {
      int64_t& coordinate = index[block_axes[block]];
      at += coordinate % block_sizes[block] * stride;
      coordinate /= block_sizes[block];
      stride *= block_sizes[block];
    }
    for (int axis = 0; axis < axes; ++axis) at += index[axis] * strides[axis];
    return at;
  }
};

Layout layout_of(const Shape& shape, const Format& format) {
  Layout layout;
  if (format.order == Order::blocked) {
    const Blocking& blocking = *format.blocking;
    layout.blocks = static_cast<int>(blocking.inner_sizes.size());
    require(layout.blocks <= kMaxBlocks, "a layout of ", layout.blocks,
            " blocks is not supported: at most ", kMaxBlocks);
    for (int i = 0; i < layout.blocks; ++i) {
      layout.block_sizes[i] = blocking.inner_sizes[i];
      layout.block_axes[i] = blocking.inner_axes[i];
    }
    for (int axis = 0; axis < shape.axes(); ++axis) layout.strides[axis] = blocking.strides[axis];
    return layout;
  }
  const bool last = format.order == Order::channels_last && shape.axes() >= 3;
  int64_t stride = !last ? 1 : format.channels > 0 ? format.channels : shape[1];
  for (int axis = shape.axes() - 1; axis >= 0; --axis) {
    if (last && axis == 1) {
      layout.strides[axis] = 1;
      continue;
    }
    layout.strides[axis] = stride;
    stride *= shape[axis];
  }
  return layout;
}

template <typename T>
struct ReorderElement {
  int axes;
  int64_t dims[kMaxReorderAxes];
  Layout from_layout, to_layout;
  const T* from;
  T* to;

  CREMA_HD void operator()(int64_t i) const {
    int64_t index[kMaxReorderAxes], again[kMaxReorderAxes];
    for (int axis = axes - 1; axis >= 0; --axis) {
      index[axis] = again[axis] = i % dims[axis];
      i /= dims[axis];
    }
    to[to_layout.offset(again, axes)] = from[from_layout.offset(index, axes)];
  }
};

template <typename T>
void reorder_each(Context& context, const Tensor& from, const Tensor& to) {
  const Shape& shape = from.shape();
  require(shape.axes() <= kMaxReorderAxes, "a blob of ", shape.axes(),
          " axes cannot be reordered: at most ", kMaxReorderAxes);
  ReorderElement<T> body{};
  body.axes = shape.axes();
  for (int axis = 0; axis < shape.axes(); ++axis) body.dims[axis] = shape[axis];
  body.from_layout = layout_of(shape, from.format());
  body.to_layout = layout_of(shape, to.format());
  body.from = from.data<T>();
  body.to = to.data<T>();
  parallel_for(context, shape.count(), body);
}

Refusal reorder_plain(Context& context, const Tensor& from, const Tensor& to) {
  if (from.dtype() != to.dtype()) return "for tensors of one type only";
  if (to.elements() != to.count()) zero(context, to);  // the padding
  switch (size_of(from.dtype())) {
    case 1:
      reorder_each<uint8_t>(context, from, to);
      break;
    case 2:
      reorder_each<uint16_t>(context, from, to);
      break;
    case 4:
      reorder_each<uint32_t>(context, from, to);
      break;
    case 8:
      reorder_each<uint64_t>(context, from, to);
      break;
    default:
      fail("elements of ", size_of(from.dtype()), " bytes cannot be reordered");
  }
  return nullptr;
}

REGISTER_KERNEL(reorder_kernels, "plain", RunsOn::both, 0, reorder_plain);

}  // namespace

}  // namespace crema
