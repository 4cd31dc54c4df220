// How the GPU's softmax walks over positions: one group of threads per position; positions whose
// few classes are contiguous are staged through shared memory by a whole block, so that loads and
// stores are coalesced. Only for device code.
#pragma once

#include <algorithm>

#include "base/ceil_div.h"
#include "device/launch.h"
#include "device/multiprocessors.h"
#include "kernels/core/pack.h"
#include "kernels/core/warp.cuh"
#include "kernels/softmax/softmax.h"

namespace crema {

constexpr int kTilePositions = 256;  // of a block, one per thread

// Copies elements between global and shared memory, 16 bytes at a time where both are aligned.
template <typename T>
__device__ void copy_tile(T* to, const T* from, int count) {
  using P = WidePack<T>;
  const bool aligned =
      (reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from)) % 16 == 0;
  const int packs = aligned ? count / kPackCount<T> : 0;
  for (int i = static_cast<int>(threadIdx.x); i < packs; i += kTilePositions)
    reinterpret_cast<P*>(to)[i] = reinterpret_cast<const P*>(from)[i];
  for (int i = packs * kPackCount<T> + static_cast<int>(threadIdx.x); i < count;
       i += kTilePositions)
    to[i] = from[i];
}

// Maps class k of a thread's position in a tile to a class rotated by the thread's index, so that
// adjacent threads read different banks even where the number of classes is a power of two.
struct TileOrder {
  int classes, first;
  explicit __device__ TileOrder(int64_t count)
      : classes(static_cast<int>(count)), first(static_cast<int>(threadIdx.x) % classes) {}
  __device__ int operator()(int64_t k) const {
    const int at = static_cast<int>(k) + first;
    return at < classes ? at : at - classes;
  }
};

template <typename T>
size_t tile_bytes(const SoftmaxView& view) {
  return kTilePositions * view.classes * sizeof(T);
}

// What processes a position: a thread (without or with tiles), a warp or a block.
enum class SoftmaxAlgorithm { positions, tiles, warps, blocks };

// tiles: how many a block needs at once.
template <typename T>
SoftmaxAlgorithm softmax_algorithm(const SoftmaxView& view, int tiles) {
  if (view.inner != 1) return SoftmaxAlgorithm::positions;
  if (view.classes >= 32)
    return view.classes <= 4096 && view.positions() >= kTypicalMultiprocessors * 8
               ? SoftmaxAlgorithm::warps
               : SoftmaxAlgorithm::blocks;
  // A block may have 48 KB, of which reductions take a little too.
  return tiles * tile_bytes<T>(view) <= 47 << 10 ? SoftmaxAlgorithm::tiles
                                                 : SoftmaxAlgorithm::positions;
}

// Positions that a block of 256 threads processes at a time.
inline int64_t positions_at_once(SoftmaxAlgorithm way) {
  return way == SoftmaxAlgorithm::blocks ? 1 : way == SoftmaxAlgorithm::warps ? 8 : kTilePositions;
}

// Calls body<kWay>(launch shape) with the algorithm for the view.
template <typename T, typename Body>
void with_softmax_algorithm(const SoftmaxView& view, int tiles, int64_t max_blocks,
                            const Body& body) {
  const SoftmaxAlgorithm way = softmax_algorithm<T>(view, tiles);
  const int64_t each = positions_at_once(way), blocks = ceil_div(view.positions(), each);
  LaunchShape shape{static_cast<unsigned>(std::clamp<int64_t>(blocks, 1, max_blocks)),
                    kTilePositions};
  switch (way) {
    case SoftmaxAlgorithm::positions:
      return body.template operator()<SoftmaxAlgorithm::positions>(shape);
    case SoftmaxAlgorithm::tiles:
      shape.shared_bytes = tiles * tile_bytes<T>(view);
      return body.template operator()<SoftmaxAlgorithm::tiles>(shape);
    case SoftmaxAlgorithm::warps:
      return body.template operator()<SoftmaxAlgorithm::warps>(shape);
    case SoftmaxAlgorithm::blocks:
      return body.template operator()<SoftmaxAlgorithm::blocks>(shape);
  }
}

// The threads that share a position.
template <SoftmaxAlgorithm kWay>
struct PositionThreads {
  static constexpr int kCount = kWay == SoftmaxAlgorithm::blocks  ? 256
                                : kWay == SoftmaxAlgorithm::warps ? 32
                                                                  : 1;
  static constexpr int kPositions = 256 / kCount;  // per block

  __device__ static int lane() { return static_cast<int>(threadIdx.x) % kCount; }
  __device__ static int position() { return static_cast<int>(threadIdx.x) / kCount; }
  template <typename C, typename Combine>
  __device__ static C all(C value, Combine combine) {
    if constexpr (kCount == 32) return warp_all(value, combine);
    if constexpr (kCount == 256) return block_all(value, combine);
    return value;
  }
};

// This thread's classes of a position, where classes are contiguous.
template <typename T, SoftmaxAlgorithm kWay>
struct PositionRow {
  using Threads = PositionThreads<kWay>;
  const T* from;
  T* to;
  int64_t classes;
  TileOrder order;
  __device__ PositionRow(const T* x, T* y, int64_t count)
      : from(x), to(y), classes(count), order(count) {}
  __device__ int64_t count() const {
    return (classes - Threads::lane() + Threads::kCount - 1) / Threads::kCount;
  }
  __device__ int64_t of(int64_t k) const {
    return kWay == SoftmaxAlgorithm::tiles ? order(k) : Threads::lane() + k * Threads::kCount;
  }
  __device__ T operator[](int64_t k) const { return from[of(k)]; }
  __device__ void put(int64_t k, T value) const { to[of(k)] = value; }
};

// Calls body(position, row) for the positions of a block, where row is this thread's part of x and
// of y: a tile, which the whole block loads and stores, is both.
template <SoftmaxAlgorithm kWay, typename T, typename Body>
__device__ void rewrite_positions(const SoftmaxView& view, const T* x, T* y, const Body& body) {
  using Threads = PositionThreads<kWay>;
  extern __shared__ __align__(16) unsigned char memory[];
  T* const tile = reinterpret_cast<T*>(memory);
  const int64_t classes = view.classes, positions = view.positions();
  const int64_t first = blockIdx.x * int64_t{Threads::kPositions};
  const int64_t position = first + Threads::position();
  if constexpr (kWay == SoftmaxAlgorithm::tiles) {
    const int count = static_cast<int>(min(positions - first, int64_t{kTilePositions}) * classes);
    copy_tile(tile, x + first * classes, count);
    __syncthreads();
    T* const row = tile + threadIdx.x * classes;
    if (position < positions) body(position, PositionRow<T, kWay>(row, row, classes));
    __syncthreads();
    copy_tile(y + first * classes, tile, count);
  } else if (position < positions) {
    body(position, PositionRow<T, kWay>(x + position * classes, y + position * classes, classes));
  }
}

// Combines the sums of the threads of a position, in each of them.
template <SoftmaxAlgorithm kWay, typename Sums>
__device__ void combine_sums(Sums& sums) {
  using Threads = PositionThreads<kWay>;
  sums.raise(Threads::all(sums.largest, Larger{}));
  sums.sum = Threads::all(sums.sum, Plus{});
  sums.below = Threads::all(sums.below, Plus{});
}

}  // namespace crema
