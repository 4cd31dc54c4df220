// How the GPU's softmax walks over places: in groups of threads, each with a place, and places
// whose few classes lie next to each other are brought into shared memory by a block together, so
// that neither loads nor stores are scattered. Only for device code.
#pragma once

#include <algorithm>

#include "device/launch.h"
#include "kernels/core/pack.h"
#include "kernels/core/warp.cuh"
#include "kernels/softmax/softmax.h"

namespace crema {

constexpr int kTilePlaces = 256;  // of a block, and its threads

// Elements of T, in tiles that begin at multiples of 16 bytes where the tensor does.
template <typename T>
__device__ void copy_tile(T* to, const T* from, int count) {
  using P = WidePack<T>;
  const bool aligned =
      (reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from)) % 16 == 0;
  const int packs = aligned ? count / kPackCount<T> : 0;
  for (int i = static_cast<int>(threadIdx.x); i < packs; i += kTilePlaces)
    reinterpret_cast<P*>(to)[i] = reinterpret_cast<const P*>(from)[i];
  for (int i = packs * kPackCount<T> + static_cast<int>(threadIdx.x); i < count; i += kTilePlaces)
    to[i] = from[i];
}

// Class k of a thread's place in a tile, from another class on for each place: threads side by side
// then read different banks also where the classes are a power of two.
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
  return kTilePlaces * view.classes * sizeof(T);
}

// How a view is cut: a thread (with or without tiles), a warp or a block for each place.
enum class SoftmaxWay { places, tiles, warps, blocks };

// tiles: that a block needs at once.
template <typename T>
SoftmaxWay softmax_way(const SoftmaxView& view, int tiles) {
  if (view.inner != 1) return SoftmaxWay::places;
  if (view.classes >= 32)
    return view.classes <= 4096 && view.places() >= 132 * 8 ? SoftmaxWay::warps
                                                            : SoftmaxWay::blocks;
  // Of the 48 KB that a block may have, sums over it take a little too.
  return tiles * tile_bytes<T>(view) <= 47 << 10 ? SoftmaxWay::tiles : SoftmaxWay::places;
}

// Places that a block of 256 threads has at a time.
inline int64_t places_at_once(SoftmaxWay way) {
  return way == SoftmaxWay::blocks ? 1 : way == SoftmaxWay::warps ? 8 : kTilePlaces;
}

// Calls body<kWay>(shape of the launch) for the way of the view.
template <typename T, typename Body>
void with_softmax_way(const SoftmaxView& view, int tiles, int64_t most_blocks, const Body& body) {
  const SoftmaxWay way = softmax_way<T>(view, tiles);
  const int64_t each = places_at_once(way), blocks = (view.places() + each - 1) / each;
  LaunchShape shape{static_cast<unsigned>(std::clamp<int64_t>(blocks, 1, most_blocks)),
                    kTilePlaces};
  switch (way) {
    case SoftmaxWay::places:
      return body.template operator()<SoftmaxWay::places>(shape);
    case SoftmaxWay::tiles:
      shape.shared_bytes = tiles * tile_bytes<T>(view);
      return body.template operator()<SoftmaxWay::tiles>(shape);
    case SoftmaxWay::warps:
      return body.template operator()<SoftmaxWay::warps>(shape);
    case SoftmaxWay::blocks:
      return body.template operator()<SoftmaxWay::blocks>(shape);
  }
}

// The threads of a place, as this thread sees them.
template <SoftmaxWay kWay>
struct PlaceThreads {
  static constexpr int kCount = kWay == SoftmaxWay::blocks  ? 256
                                : kWay == SoftmaxWay::warps ? 32
                                                            : 1;
  static constexpr int kPlaces = 256 / kCount;  // of a block

  __device__ static int lane() { return static_cast<int>(threadIdx.x) % kCount; }
  __device__ static int place() { return static_cast<int>(threadIdx.x) / kCount; }
  template <typename C, typename Combine>
  __device__ static C all(C value, Combine combine) {
    if constexpr (kCount == 32) return warp_all(value, combine);
    if constexpr (kCount == 256) return block_all(value, combine);
    return value;
  }
};

// The classes of a place that a thread has, where the classes lie next to each other.
template <typename T, SoftmaxWay kWay>
struct PlaceRow {
  using Threads = PlaceThreads<kWay>;
  const T* from;
  T* to;
  int64_t classes;
  TileOrder order;
  __device__ PlaceRow(const T* x, T* y, int64_t count)
      : from(x), to(y), classes(count), order(count) {}
  __device__ int64_t count() const {
    return (classes - Threads::lane() + Threads::kCount - 1) / Threads::kCount;
  }
  __device__ int64_t of(int64_t k) const {
    return kWay == SoftmaxWay::tiles ? order(k) : Threads::lane() + k * Threads::kCount;
  }
  __device__ T operator[](int64_t k) const { return from[of(k)]; }
  __device__ void put(int64_t k, T value) const { to[of(k)] = value; }
};

// Calls body(place, row) for the places of a block, where row is what the thread has of x and of y:
// a tile, that all bring and take away together, is both.
template <SoftmaxWay kWay, typename T, typename Body>
__device__ void rewrite_places(const SoftmaxView& view, const T* x, T* y, const Body& body) {
  using Threads = PlaceThreads<kWay>;
  extern __shared__ __align__(16) unsigned char memory[];
  T* const tile = reinterpret_cast<T*>(memory);
  const int64_t classes = view.classes, places = view.places();
  const int64_t first = blockIdx.x * int64_t{Threads::kPlaces};
  const int64_t place = first + Threads::place();
  if constexpr (kWay == SoftmaxWay::tiles) {
    const int count = static_cast<int>(min(places - first, int64_t{kTilePlaces}) * classes);
    copy_tile(tile, x + first * classes, count);
    __syncthreads();
    T* const row = tile + threadIdx.x * classes;
    if (place < places) body(place, PlaceRow<T, kWay>(row, row, classes));
    __syncthreads();
    copy_tile(y + first * classes, tile, count);
  } else if (place < places) {
    body(place, PlaceRow<T, kWay>(x + place * classes, y + place * classes, classes));
  }
}

// Combines the sums of the threads of a place, in each of them.
template <SoftmaxWay kWay, typename Sums>
__device__ void combine_sums(Sums& sums) {
  using Threads = PlaceThreads<kWay>;
  sums.raise(Threads::all(sums.largest, Larger{}));
  sums.sum = Threads::all(sums.sum, Plus{});
  sums.below = Threads::all(sums.below, Plus{});
}

}  // namespace crema
