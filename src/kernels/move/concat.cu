// On a GPU one kernel copies all pieces; on a CPU there is one loop per piece.
#include "kernels/move/concat.h"

#include <algorithm>
#include <utility>

#include "kernels/pointwise/pointwise.h"

namespace crema {
namespace {

// A tensor in memory around an axis: `outer` times its `extent` entries, each `inner` contiguous
// elements.
struct AxisView {
  int64_t outer, extent, inner;
};

AxisView axis_view(const Tensor& tensor, int axis) {
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

constexpr int kPieces = 8;  // per kernel
constexpr int kWholes = 5;  // added in one pass

// Some adjacent pieces as columns of the whole's rows. P: a pack or one element.
template <typename P>
struct Pieces {
  P* at[kPieces] = {};                        // null: zeros, or not wanted
  uint32_t end[kPieces] = {};                 // one past its last column; unused: all columns
  uint32_t first = 0, columns = 0, step = 0;  // of the whole: first column, columns in all, per row

  // Finds the piece of a column, and converts the column to one of the piece.
  CREMA_HD P* find(uint32_t row, uint32_t* column) const {
    // Selects without a variable index, which would put the arrays into local memory.
    P* piece = at[0];
    uint32_t begin = 0, width = end[0];
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (int n = 1; n < kPieces; ++n) {
      if (*column >= end[n - 1]) {
        piece = at[n];
        begin = end[n - 1];
        width = end[n] - begin;
      }
    }
    *column -= begin;
    return piece ? piece + static_cast<int64_t>(row) * width : nullptr;
  }
};

template <typename P>
struct Join {
  Pieces<P> pieces;
  P* whole;
  CREMA_HD void operator()(int64_t i) const {
    const auto index = static_cast<uint32_t>(i);
    const uint32_t row = index / pieces.columns;
    uint32_t column = index - row * pieces.columns;
    P* const to = whole + static_cast<int64_t>(row) * pieces.step + pieces.first + column;
    const P* const from = pieces.find(row, &column);
    *to = from ? from[column] : P{};
  }
};

template <typename T, int kPack, int kCount>
struct Cut {
  using P = Pack<T, kPack>;
  Pieces<P> pieces;
  const P* wholes[kCount];
  CREMA_HD void operator()(int64_t i) const {
    const auto index = static_cast<uint32_t>(i);
    const uint32_t row = index / pieces.columns;
    uint32_t column = index - row * pieces.columns;
    const int64_t at = static_cast<int64_t>(row) * pieces.step + pieces.first + column;
    P* const to = pieces.find(row, &column);
    if (!to) return;
    P p[kCount];
    for (int n = 0; n < kCount; ++n) p[n] = wholes[n][at];
    for (int k = 0; k < kPack && kCount > 1; ++k) {
      Compute<T> sum = p[0].v[k];
      for (int n = 1; n < kCount; ++n) sum += Compute<T>(p[n].v[k]);
      p[0].v[k] = sum;
    }
    to[column] = p[0];
  }
};

// Calls body(kernel's pieces, threads) for up to kPieces of them at a time.
template <typename P, typename Body>
void over_pieces(const AxisView& whole, int pack, const std::vector<int64_t>& extents,
                 const std::vector<Tensor>& pieces, const Body& body) {
  int64_t begin = 0;
  for (size_t next = 0; next < pieces.size();) {
    Pieces<P> some;
    some.first = static_cast<uint32_t>(begin * whole.inner / pack);
    some.step = static_cast<uint32_t>(whole.extent * whole.inner / pack);
    int used = 0;
    for (; used < kPieces && next < pieces.size(); ++used, ++next) {
      some.at[used] = pieces[next].template data<P>();
      some.columns += static_cast<uint32_t>(extents[next] * whole.inner / pack);
      some.end[used] = some.columns;
      begin += extents[next];
    }
    std::fill(some.end + used, some.end + kPieces, some.columns);
    body(some, whole.outer * some.columns);
  }
}

// True when all tensors consist of whole aligned packs of 16 bytes.
template <typename T>
bool pieces_in_packs(const AxisView& whole, const std::vector<int64_t>& extents,
                     const std::vector<Tensor>& pieces, const std::vector<Tensor>& wholes) {
  bool fits = true;
  for (int64_t extent : extents) fits = fits && extent * whole.inner % kPackCount<T> == 0;
  for (const Tensor& tensor : pieces) fits = fits && takes_packs<T>(0, tensor.raw());
  for (const Tensor& tensor : wholes) fits = fits && takes_packs<T>(0, tensor.raw());
  return fits;
}

// Column and row indices have 32 bits.
bool in_one_kernel(Context& context, int64_t count) {
  return context.device() == Device::gpu && count < int64_t{1} << 31;
}

}  // namespace

int max_fused_wholes(Context& context, int64_t count) {
  return in_one_kernel(context, count) ? kWholes : 1;
}

void concat_pieces(Context& context, int axis, const std::vector<int64_t>& extents,
                   const std::vector<Tensor>& pieces, const Tensor& whole) {
  const AxisView view = axis_view(whole, axis);
  on_real(whole, [&]<typename T>() {
    if (in_one_kernel(context, whole.count())) {
      const auto join = [&]<int kPack>() {
        using P = Pack<T, kPack>;
        over_pieces<P>(view, kPack, extents, pieces, [&](const Pieces<P>& some, int64_t count) {
          parallel_for(context, count, Join<P>{some, whole.data<P>()});
        });
      };
      const bool packs = pieces_in_packs<T>(view, extents, pieces, {whole});
      return packs ? join.template operator()<kPackCount<T>>() : join.template operator()<1>();
    }
    int64_t begin = 0;
    for (size_t i = 0; i < pieces.size(); ++i) {
      const int64_t columns = extents[i] * view.inner;
      parallel_rows(context, view.outer, columns,
                    CopyBody<T>{pieces[i].data<T>(), whole.data<T>() + begin, columns,
                                view.extent * view.inner});
      begin += columns;
    }
  });
}

void split_pieces(Context& context, int axis, const std::vector<int64_t>& extents,
                  const std::vector<Tensor>& wholes, const std::vector<Tensor>& pieces) {
  const AxisView view = axis_view(wholes[0], axis);
  on_real(wholes[0], [&]<typename T>() {
    if (in_one_kernel(context, wholes[0].count())) {
      const auto cut = [&]<int kPack, int kCount>() {
        Cut<T, kPack, kCount> body;
        for (int n = 0; n < kCount; ++n) body.wholes[n] = wholes[n].data<Pack<T, kPack>>();
        over_pieces<Pack<T, kPack>>(view, kPack, extents, pieces,
                                    [&](const Pieces<Pack<T, kPack>>& some, int64_t count) {
                                      body.pieces = some;
                                      parallel_for(context, count, body);
                                    });
      };
      const bool packs = pieces_in_packs<T>(view, extents, pieces, wholes);
      const auto cut_sum = [&]<int kCount>() {
        packs ? cut.template operator()<kPackCount<T>, kCount>()
              : cut.template operator()<1, kCount>();
      };
      const auto count = static_cast<int>(wholes.size());
      require(count <= kWholes, count, " tensors cannot be added while they are cut");
      return [&]<int... n>(std::integer_sequence<int, n...>) {
        ((count == n + 1 ? cut_sum.template operator()<n + 1>() : void()), ...);
      }
      (std::make_integer_sequence<int, kWholes>{});
    }
    require(wholes.size() == 1, wholes.size(), " tensors cannot be added while they are cut");
    int64_t begin = 0;
    for (size_t i = 0; i < pieces.size(); ++i) {
      const int64_t columns = extents[i] * view.inner;
      if (pieces[i]) {
        parallel_rows(context, view.outer, columns,
                      CopyBody<T>{wholes[0].data<T>() + begin, pieces[i].data<T>(),
                                  view.extent * view.inner, columns});
      }
      begin += columns;
    }
  });
}

}  // namespace crema
