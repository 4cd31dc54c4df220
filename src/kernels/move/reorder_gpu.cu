// Reordering on the GPU: conversion of the floating-point type, and transposition between row-major
// and channels-last, both memory-bound.
#include <algorithm>

#include "base/ceil_div.h"
#include "device/multiprocessors.h"
#include "device/programmatic_launch.h"
#include "kernels/core/divisor.h"
#include "kernels/core/pack.h"
#include "kernels/move/reorder_kernels.h"
#include "kernels/move/transpose_tiles.cuh"
#include "tensor/on.h"

namespace crema {
namespace {

template <typename From, typename To>
__global__ void convert_elements(int64_t count, const From* from, To* to) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x; i < count;
       i += stride) {
    to[i] = static_cast<Compute<From>>(from[i]);
  }
}

template <typename From, typename To>
__global__ void convert_packs(int64_t packs, const Pack<From, 8>* from, Pack<To, 8>* to) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x; i < packs;
       i += stride) {
    const Pack<From, 8> in = from[i];
    Pack<To, 8> out;
#pragma unroll
    for (int k = 0; k < 8; ++k) out.v[k] = static_cast<Compute<From>>(in.v[k]);
    to[i] = out;
  }
}

// Few channels (images): a thread has all channels of a pixel. In channels-last pixels are `padded`
// channels apart, and the padding is zero.
template <typename From, typename To, bool kToLast>
__global__ void transpose_narrow(int64_t narrow, int64_t padded, int64_t wide, int64_t count,
                                 const From* from, To* to) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x; i < count;
       i += stride) {
    const int64_t image = i / wide, at = i % wide;
    for (int64_t k = 0; k < narrow; ++k) {
      const int64_t spread = (image * narrow + k) * wide + at, dense = i * padded + k;
      if constexpr (kToLast) {
        to[dense] = static_cast<Compute<From>>(from[spread]);
      } else {
        to[spread] = static_cast<Compute<From>>(from[dense]);
      }
    }
    if constexpr (kToLast) {
      for (int64_t k = narrow; k < padded; ++k) to[i * padded + k] = Compute<To>(0);
    }
  }
}

// The same to 16 bits and 4 or 8 channels in memory, which one access writes.
template <typename From, typename To, int kPadded>
__global__ void transpose_pixels(int channels, Divisor points, int64_t count, const From* from,
                                 Pack<To, kPadded>* to) {
  wait_for_earlier_kernels();
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x; i < count;
       i += stride) {
    auto at = static_cast<uint32_t>(i);
    const int64_t image = points.split(at);
    const From* const first = from + image * channels * points.value + at;
    Pack<To, kPadded> pixel;
#pragma unroll
    for (int k = 0; k < kPadded; ++k) {
      pixel.v[k] = k < channels ? static_cast<Compute<From>>(first[int64_t{k} * points.value])
                                : Compute<From>(0);
    }
    to[i] = pixel;
  }
  let_next_kernel_start();
}

unsigned blocks_for(int64_t count) {
  return static_cast<unsigned>(
      std::clamp<int64_t>(ceil_div(count, 256), 1, kTypicalMultiprocessors * 16));
}

// Calls body<From, To>() for any two floating-point types that a GPU net mixes.
template <typename Body>
void on_pair(const Tensor& from, const Tensor& to, const Body& body) {
  on_real(from, [&]<typename From>() {
    on_real(to, [&]<typename To>() {
      constexpr bool mixed = std::is_same_v<From, double> != std::is_same_v<To, double>;
      if constexpr (mixed) {
        fail("float64 and other real types do not mix in one net");
      } else {
        body.template operator()<From, To>();
      }
    });
  });
}

// The same layout, another floating-point type.
void convert(Context& context, const Tensor& from, const Tensor& to) {
  const int64_t count = from.elements();
  if (count == 0) return;
  const Gpu& gpu = context.gpu();
  on_pair(from, to, [&]<typename From, typename To>() {
    if (count % 8 == 0 && reinterpret_cast<uintptr_t>(from.raw()) % (8 * sizeof(From)) == 0 &&
        reinterpret_cast<uintptr_t>(to.raw()) % (8 * sizeof(To)) == 0) {
      launch(gpu, convert_packs<From, To>, {blocks_for(count / 8), 256}, count / 8,
             from.data<Pack<From, 8>>(), to.data<Pack<To, 8>>());
    } else {
      launch(gpu, convert_elements<From, To>, {blocks_for(count), 256}, count, from.data<From>(),
             to.data<To>());
    }
  });
}

// Row-major to channels-last or back, floating-point types.
void transpose_gpu(Context& context, const Tensor& from, const Tensor& to) {
  const Shape& shape = from.shape();
  if (shape.count() == 0) return;
  const int64_t images = shape[0], channels = shape[1], points = shape.count(2);
  const bool to_last = to.format().order == Order::channels_last;
  const int64_t rows = to_last ? channels : points, columns = to_last ? points : channels;
  const Gpu& gpu = context.gpu();
  on_pair(from, to, [&]<typename From, typename To>() {
    if (channels <= 8) {
      const int64_t count = images * points;
      const int64_t memory = std::max(channels, (to_last ? to : from).format().channels);
      if constexpr (sizeof(To) == 2) {
        const auto pixels = [&]<int kPadded>() {
          launch_programmatic(gpu, transpose_pixels<From, To, kPadded>, {blocks_for(count), 256},
                              static_cast<int>(channels), Divisor(points), count, from.data<From>(),
                              to.data<Pack<To, kPadded>>());
        };
        const bool whole = to_last && count < Divisor::kMax &&
                           reinterpret_cast<uintptr_t>(to.raw()) % (memory * sizeof(To)) == 0;
        if (whole && memory == 4) return pixels.template operator()<4>();
        if (whole && memory == 8) return pixels.template operator()<8>();
      }
      const auto kernel =
          to_last ? transpose_narrow<From, To, true> : transpose_narrow<From, To, false>;
      launch(gpu, kernel, {blocks_for(count), 256}, channels, memory, points, count,
             from.data<From>(), to.data<To>());
    } else {
      Transposition t;
      t.rows = t.to_column = rows, t.columns = t.from_row = columns;
      t.outer = 1, t.extent[0] = images, t.from[0] = t.to[0] = rows * columns;
      require(transpose_tiles(gpu, t, from.data<From>(), to.data<To>()), "a blob of shape ",
              shape.brief(), " is too large to be reordered in one kernel");
    }
  });
}

Refusal reorder_gpu(Context& context, const Tensor& from, const Tensor& to) {
  if (!is_real(from.dtype()) || !is_real(to.dtype())) return "for floating-point types only";
  const Order a = from.format().order, b = to.format().order;
  if (same_layout(from.format(), to.format(), from.shape())) {
    convert(context, from, to);
  } else if (a != b && a != Order::blocked && b != Order::blocked) {
    transpose_gpu(context, from, to);
  } else {
    return "for row-major and channels-last only";
  }
  return nullptr;
}

REGISTER_KERNEL(reorder_kernels, "cuda", RunsOn::gpu, 30, reorder_gpu);

}  // namespace
}  // namespace crema
