// Strided copies on the GPU: in the widest pieces that are contiguous on both sides; through tiles
// where the fastest axes differ; otherwise one piece at a time, with several loads in flight per
// thread.
#include <cstdlib>
#include <utility>

#include "base/ceil_div.h"
#include "device/multiprocessors.h"
#include "kernels/move/sorted_moves.h"
#include "kernels/move/transpose_tiles.cuh"
#include "tensor/on.h"

namespace crema {
namespace {

constexpr int kMaxAxes = 6, kStretchThreads = 256;
constexpr int64_t kMinTile = 16;  // smallest extents for which tiles are profitable

// `count` pieces: the destination and source of piece i, in pieces.
template <int kAxes>
struct Paths {
  uint32_t count;
  Divisor extent[kAxes];
  int32_t to[kAxes], from[kAxes];

  explicit Paths(const std::vector<MovedAxis>& axes) : count(1) {
    for (int i = 0; i < kAxes; ++i) {
      const int at = i - (kAxes - static_cast<int>(axes.size()));
      const MovedAxis axis = at < 0 ? MovedAxis{} : axes[at];
      count *= static_cast<uint32_t>(axis.extent);
      extent[i] = Divisor(axis.extent);
      to[i] = static_cast<int32_t>(axis.to);
      from[i] = static_cast<int32_t>(axis.from);
    }
  }

  __device__ void at(uint32_t i, int32_t& destination, int32_t& source) const {
    destination = 0, source = 0;
#pragma unroll
    for (int axis = kAxes - 1; axis > 0; --axis) {
      uint32_t position = i;
      i = extent[axis].split(position);
      destination += static_cast<int32_t>(position) * to[axis];
      source += static_cast<int32_t>(position) * from[axis];
    }
    destination += static_cast<int32_t>(i) * to[0];
    source += static_cast<int32_t>(i) * from[0];
  }
};

// Pieces per thread: enough bytes in flight to keep the memory busy.
template <typename Piece>
constexpr int kEach = sizeof(Piece) == 2 ? 8 : 4;

template <typename Piece, int kAxes>
__global__ void __launch_bounds__(kStretchThreads)
    move_pieces(Paths<kAxes> paths, const Piece* from, Piece* to) {
  const uint32_t first = blockIdx.x * (kStretchThreads * kEach<Piece>)+threadIdx.x;
  Piece pieces[kEach<Piece>];
  int32_t destinations[kEach<Piece>];
#pragma unroll
  for (int k = 0; k < kEach<Piece>; ++k) {
    const uint32_t i = first + k * kStretchThreads;
    if (i >= paths.count) continue;
    int32_t source;
    paths.at(i, destinations[k], source);
    pieces[k] = from[source];
  }
#pragma unroll
  for (int k = 0; k < kEach<Piece>; ++k) {
    if (first + k * kStretchThreads < paths.count) to[destinations[k]] = pieces[k];
  }
}

// Copies stretches: a contiguous stretch of x becomes a contiguous stretch of y in another order,
// the same for every stretch. Goes through shared memory, with a table of source indices.
constexpr int kStretchBytes = 16 << 10;

template <typename T>
__global__ void __launch_bounds__(kStretchThreads)
    move_stretches(Paths<kMaxAxes> inside, int32_t first, Paths<3> stretches, const T* from,
                   T* to) {
  __shared__ WidePack<T> stretch[kStretchBytes / 16];
  __shared__ Pack<uint16_t, kPackCount<T>> sources[kStretchBytes / 16];
  const T* const elements = reinterpret_cast<const T*>(stretch);
  for (uint32_t i = threadIdx.x; i < inside.count; i += kStretchThreads) {
    int32_t destination, source;
    inside.at(i, destination, source);
    reinterpret_cast<uint16_t*>(sources)[destination] = static_cast<uint16_t>(source + first);
  }
  const uint32_t packs = inside.count / kPackCount<T>;
  for (uint32_t n = blockIdx.x; n < stretches.count; n += gridDim.x) {
    int32_t destination, source;
    stretches.at(n, destination, source);
    const auto* const given = reinterpret_cast<const WidePack<T>*>(from + source);
    auto* const made = reinterpret_cast<WidePack<T>*>(to + destination);
#pragma unroll 4
    for (uint32_t i = threadIdx.x; i < packs; i += kStretchThreads) stretch[i] = given[i];
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < packs; i += kStretchThreads) {
      const Pack<uint16_t, kPackCount<T>> of = sources[i];
      WidePack<T> p;
#pragma unroll
      for (int k = 0; k < kPackCount<T>; ++k) p.v[k] = elements[of.v[k]];
      made[i] = p;
    }
    __syncthreads();
  }
}

// Packs that are sums of `outer` x `inner` packs.
struct SummedPacks {
  int32_t outer, inner, outer_step, inner_step;
};

template <typename T, int kPack>
__global__ void __launch_bounds__(kStretchThreads)
    sum_packs(Paths<4> paths, SummedPacks s, Compute<T> factor, const Pack<T, kPack>* from,
              Pack<T, kPack>* to) {
  const uint32_t i = blockIdx.x * kStretchThreads + threadIdx.x;
  if (i >= paths.count) return;
  int32_t destination, source;
  paths.at(i, destination, source);
  Compute<T> sums[kPack] = {};
  for (int32_t a = 0; a < s.outer; ++a) {
#pragma unroll 4
    for (int32_t b = 0; b < s.inner; ++b) {
      const Pack<T, kPack> p = from[source + a * s.outer_step + b * s.inner_step];
#pragma unroll
      for (int k = 0; k < kPack; ++k) sums[k] += static_cast<Compute<T>>(p.v[k]);
    }
  }
  Pack<T, kPack> out;
#pragma unroll
  for (int k = 0; k < kPack; ++k) out.v[k] = factor * sums[k];
  to[destination] = out;
}

int64_t pieces_of(const std::vector<MovedAxis>& axes) {
  int64_t count = 1;
  for (const MovedAxis& axis : axes) count *= axis.extent;
  return count;
}

// True when pieces of `pack` elements are contiguous and aligned on both sides.
bool in_packs(const SortedMoves& moves, int64_t pack) {
  if (moves.kept.empty()) return false;
  const MovedAxis& last = moves.kept.back();
  bool fits = last.to == 1 && last.from == 1 && last.extent % pack == 0 &&
              moves.to_start % pack == 0 && moves.from_start % pack == 0;
  for (const MovedAxis& axis : moves.kept)
    fits = fits && (&axis == &last || (axis.to % pack == 0 && axis.from % pack == 0));
  for (const MovedAxis& axis : moves.sums) fits = fits && axis.from % pack == 0;
  return fits;
}

void count_in_packs(SortedMoves& moves, int64_t pack) {
  for (MovedAxis& axis : moves.kept) axis.to /= pack, axis.from /= pack;
  for (MovedAxis& axis : moves.sums) axis.from /= pack;
  MovedAxis& last = moves.kept.back();
  last = {last.extent / pack, 1, 1};
  moves.to_start /= pack, moves.from_start /= pack;
  if (last.extent == 1) moves.kept.pop_back();
}

bool aligned(size_t bytes, const Tensor& x, const Tensor& y) {
  return reinterpret_cast<uintptr_t>(x.raw()) % bytes == 0 &&
         reinterpret_cast<uintptr_t>(y.raw()) % bytes == 0;
}

// Expresses the copy as transposed matrices of the axis that is fastest in y and the one that is
// fastest in x.
bool as_transposition(const SortedMoves& moves, Transposition& t) {
  if (moves.kept.size() < 2 || moves.kept.size() > Transposition::kMaxOuter + 2) return false;
  const MovedAxis& rows = moves.kept.back();
  if (rows.to != 1 || rows.extent < kMinTile) return false;
  bool found = false;
  for (const MovedAxis& axis : moves.kept) {
    if (&axis == &rows) continue;
    if (!found && axis.from == 1 && axis.extent >= kMinTile) {
      t.columns = axis.extent, t.to_column = axis.to;
      found = true;
    } else if (t.outer < Transposition::kMaxOuter) {
      t.extent[t.outer] = axis.extent, t.from[t.outer] = axis.from, t.to[t.outer] = axis.to;
      ++t.outer;
    } else {
      return false;
    }
  }
  t.rows = rows.extent, t.from_row = rows.from;
  return found;
}

// Splits the axes of a copy into the last ones, inside a stretch, and those that step from stretch
// to stretch.
struct Stretches {
  std::vector<MovedAxis> inside, outside;
  int64_t count = 1;
  int32_t first = 0;  // offset of the first element's source in the stretch

  // Takes as many of the last axes as fit into a stretch of `maximum` elements, and then a part of
  // the next axis where it is contiguous on both sides.
  Stretches(const SortedMoves& moves, int64_t maximum) : outside(moves.kept) {
    while (!outside.empty() && count * outside.back().extent <= maximum &&
           outside.back().to == count) {
      count *= outside.back().extent;
      inside.insert(inside.begin(), outside.back());
      outside.pop_back();
    }
    if (outside.empty() || outside.back().to != count || outside.back().from != count) return;
    MovedAxis& axis = outside.back();
    int64_t part = maximum / count;
    while (axis.extent % part != 0) --part;
    if (part == 1) return;
    inside.insert(inside.begin(), {part, count, count});
    count *= part;
    axis = {axis.extent / part, count, count};
  }

  // True when a stretch of y comes from exactly one stretch of x, all in whole packs.
  bool closed(const SortedMoves& moves, int64_t pack) {
    std::vector<MovedAxis> axes = inside;
    std::stable_sort(axes.begin(), axes.end(), [](const MovedAxis& a, const MovedAxis& b) {
      return std::abs(a.from) < std::abs(b.from);
    });
    int64_t dense = 1;
    for (const MovedAxis& axis : axes) {
      if (std::abs(axis.from) != dense) return false;
      if (axis.from < 0) first += static_cast<int32_t>((1 - axis.extent) * axis.from);
      dense *= axis.extent;
    }
    bool packs =
        count % pack == 0 && moves.to_start % pack == 0 && (moves.from_start - first) % pack == 0;
    for (const MovedAxis& axis : outside)
      packs = packs && axis.to % pack == 0 && axis.from % pack == 0;
    return packs && outside.size() <= 3 && count >= 16 * pack;
  }
};

template <typename T>
bool move_in_stretches(Context& context, const SortedMoves& moves, const Tensor& x,
                       const Tensor& y) {
  Stretches s(moves, kStretchBytes / static_cast<int64_t>(sizeof(T)));
  if (!aligned(16, x, y) || !s.closed(moves, kPackCount<T>)) return false;
  const Paths<3> stretches(s.outside);
  const unsigned blocks = std::min(stretches.count, 7u * kTypicalMultiprocessors);
  launch(context.gpu(), move_stretches<T>, {blocks, kStretchThreads}, Paths<kMaxAxes>(s.inside),
         s.first, stretches, x.data<T>() + moves.from_start - s.first,
         y.data<T>() + moves.to_start);
  return true;
}

template <typename Piece>
void move_all(Context& context, const SortedMoves& moves, const Tensor& x, const Tensor& y) {
  const Piece* from = x.data<Piece>() + moves.from_start;
  Piece* to = y.data<Piece>() + moves.to_start;
  if constexpr (sizeof(Piece) <= 8) {
    Transposition t;
    if (as_transposition(moves, t) && transpose_tiles(context.gpu(), t, from, to)) return;
    if (moves.kept.size() > 1 && move_in_stretches<Piece>(context, moves, x, y)) return;
  }
  const int64_t each = kStretchThreads * kEach<Piece>, count = pieces_of(moves.kept);
  const LaunchShape shape{static_cast<unsigned>(ceil_div(count, each)), kStretchThreads};
  const auto run = [&]<int kAxes>() {
    launch(context.gpu(), move_pieces<Piece, kAxes>, shape, Paths<kAxes>(moves.kept), from, to);
  };
  const auto axes = static_cast<int>(moves.kept.size());
  [&]<int... n>(std::integer_sequence<int, n...>) {
    ((std::max(axes, 1) == n + 1 ? run.template operator()<n + 1>() : void()), ...);
  }
  (std::make_integer_sequence<int, kMaxAxes>{});
}

void move_plainly(Context& context, SortedMoves moves, const Tensor& x, const Tensor& y) {
  const auto size = static_cast<int64_t>(size_of(y.dtype()));
  int64_t piece = size;
  for (int64_t bytes = 16; bytes > size && piece == size; bytes /= 2) {
    if (!in_packs(moves, bytes / size) || !aligned(bytes, x, y)) continue;
    count_in_packs(moves, bytes / size);
    piece = bytes;
  }
  switch (piece) {
    case 2:
      return move_all<uint16_t>(context, moves, x, y);
    case 4:
      return move_all<uint32_t>(context, moves, x, y);
    case 8:
      return move_all<uint64_t>(context, moves, x, y);
    default:
      return move_all<Pack<uint64_t, 2>>(context, moves, x, y);
  }
}

void sum_up(Context& context, SortedMoves moves, const Tensor& x, const Tensor& y) {
  on_real(y, [&]<typename T>() {
    const auto with = [&]<int kPack>() {
      moves.sums.resize(2);
      const MovedAxis &a = moves.sums[0], &b = moves.sums[1];
      const SummedPacks s{static_cast<int32_t>(a.extent), static_cast<int32_t>(b.extent),
                          static_cast<int32_t>(a.from), static_cast<int32_t>(b.from)};
      const Paths<4> paths(moves.kept);
      using P = Pack<T, kPack>;
      launch(context.gpu(), sum_packs<T, kPack>,
             {static_cast<unsigned>(ceil_div(paths.count, kStretchThreads)), kStretchThreads},
             paths, s, static_cast<Compute<T>>(moves.factor), x.data<P>() + moves.from_start,
             y.data<P>() + moves.to_start);
    };
    if (in_packs(moves, kPackCount<T>) && aligned(16, x, y)) {
      count_in_packs(moves, kPackCount<T>);
      with.template operator()<kPackCount<T>>();
    } else {
      with.template operator()<1>();
    }
  });
}

Refusal strided_copy_gpu(Context& context, const SortedMoves& moves, const Tensor& x,
                         const Tensor& y) {
  // Offsets have 32 bits.
  if (std::max(x.elements(), y.elements()) >= Divisor::kMax) return "at most 2^31 elements";
  const size_t size = size_of(y.dtype());
  if (moves.sums.empty() && moves.factor == 1 && moves.kept.size() <= kMaxAxes &&
      (size == 2 || size == 4 || size == 8)) {
    move_plainly(context, moves, x, y);
    return nullptr;
  }
  if (moves.kept.size() <= 4 && moves.sums.size() <= 2) {
    sum_up(context, moves, x, y);
    return nullptr;
  }
  return "too many axes";
}

REGISTER_KERNEL(strided_copy_kernels, "cuda", RunsOn::gpu, 30, strided_copy_gpu);

}  // namespace
}  // namespace crema
