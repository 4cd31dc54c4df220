#include "kernels/concat.h"

#include "kernels/pointwise.h"

namespace crema {
namespace {

// The tensor in memory: `rows` rows, each with all entries of the axis, `inner` elements for each
// entry.
struct Strips {
  int64_t rows, entries, inner;
};

Strips strips_of(const Tensor& tensor, int axis) {
  std::vector<int64_t> dims = tensor.shape().dims();
  if (tensor.format().order == Order::channels_last && dims.size() >= 3) {
    dims.push_back(dims[1]);
    dims.erase(dims.begin() + 1);
    if (axis == 1) {
      axis = static_cast<int>(dims.size()) - 1;
    } else if (axis > 1) {
      --axis;
    }
  }
  const Shape memory(dims);
  return {memory.count(0, axis), memory[axis], memory.count(axis + 1)};
}

template <typename T>
struct CopyBody {
  const T* from;  // null: zeros
  T* to;
  int64_t from_step, to_step;
  CREMA_HD void operator()(int64_t row, int64_t column) const {
    to[row * to_step + column] = from ? from[row * from_step + column] : T{};
  }
};

}  // namespace

void copy_part(Context& context, int axis, int64_t extent, const Tensor& from, int64_t from_begin,
               const Tensor& to, int64_t to_begin) {
  const Strips a = strips_of(from, axis), b = strips_of(to, axis);
  on_real(to, [&]<typename T>() {
    const T* const begin = from.data<T>() + from_begin * a.inner;
    T* const goal = to.data<T>() + to_begin * b.inner;
    const int64_t from_step = a.entries * a.inner, to_step = b.entries * b.inner,
                  columns = extent * b.inner;
    const int64_t pack = kPackCount<T>;
    if (context.device() == Device::gpu && from_step % pack == 0 && to_step % pack == 0 &&
        takes_packs<T>(columns, begin, goal)) {
      using P = WidePack<T>;
      const CopyBody<P> body{reinterpret_cast<const P*>(begin), reinterpret_cast<P*>(goal),
                             from_step / pack, to_step / pack};
      return parallel_rows(context, b.rows, columns / pack, body);
    }
    parallel_rows(context, b.rows, columns, CopyBody<T>{begin, goal, from_step, to_step});
  });
}

void zero_part(Context& context, int axis, int64_t extent, const Tensor& to, int64_t begin) {
  const Strips b = strips_of(to, axis);
  on_real(to, [&]<typename T>() {
    const CopyBody<T> body{nullptr, to.data<T>() + begin * b.inner, 0, b.entries * b.inner};
    parallel_rows(context, b.rows, extent * b.inner, body);
  });
}

}  // namespace crema
