// Pooling with dilation or over four spatial axes on the GPU, channels-last: a thread has one pack
// of channels of one position and loops over its window, or over the windows that contain it; the
// number of axes is a compile-time constant.
#include <algorithm>
#include <cfloat>

#include "base/ceil_div.h"
#include "device/launch.h"
#include "kernels/core/divisor.h"
#include "kernels/core/pack.h"
#include "kernels/pool/counted_cells.h"
#include "kernels/pool/pool_nd.h"
#include "tensor/on.h"

namespace crema {
namespace {

constexpr int kThreads = 256;

// Geometry with 32-bit integers; `here` are the extents of the tensor that threads write, `there`
// of the one they read.
template <int kAxes>
struct Geometry32Nd {
  uint32_t count;  // packs to write
  Divisor packs, here[kAxes], stride[kAxes];
  int there[kAxes], image[kAxes];  // image: extents of x
  int kernel[kAxes], pad[kAxes], dilation[kAxes];
  bool count_padding, average;

  Geometry32Nd(const PoolNd& window, bool mean, int pack, const Tensor& x, const Tensor& to,
               const Tensor& from)
      : count(static_cast<uint32_t>(to.count() / pack)),
        packs(to.shape()[1] / pack),
        count_padding(window.count_padding),
        average(mean) {
    for (int a = 0; a < kAxes; ++a) {
      here[a] = Divisor(to.shape()[a + 2]);
      stride[a] = Divisor(window.stride[a]);
      there[a] = static_cast<int>(from.shape()[a + 2]);
      image[a] = static_cast<int>(x.shape()[a + 2]);
      kernel[a] = static_cast<int>(window.kernel[a]);
      pad[a] = static_cast<int>(window.pad[a]);
      dilation[a] = static_cast<int>(window.dilation[a]);
    }
  }

  // Splits the index of a pack into coordinates; returns the offset of its image in the tensor that
  // is read, in packs.
  __device__ int64_t position(uint32_t i, int (&at)[kAxes], int& pack) const {
    uint32_t rest = i, part = i;
    rest = packs.split(part);
    pack = static_cast<int>(part);
#pragma unroll
    for (int a = kAxes - 1; a >= 0; --a) {
      part = rest;
      rest = here[a].split(part);
      at[a] = static_cast<int>(part);
    }
    int64_t size = packs.value;
#pragma unroll
    for (int a = 0; a < kAxes; ++a) size *= there[a];
    return rest * size + pack;
  }

  __device__ int counted(int a, int o) const {
    return counted_cells(o * static_cast<int>(stride[a].value) - pad[a], kernel[a], image[a],
                         pad[a], count_padding, dilation[a]);
  }

  // Calls use(position in the image) for the cells of output o's window.
  template <int kAxis = 0, typename Use>
  __device__ void over_cells(const int (&o)[kAxes], int position, const Use& use) const {
    if constexpr (kAxis == kAxes) {
      use(position);
    } else {
      int at = o[kAxis] * static_cast<int>(stride[kAxis].value) - pad[kAxis];
      for (int k = 0; k < kernel[kAxis]; ++k, at += dilation[kAxis]) {
        if (at >= 0 && at < there[kAxis])
          over_cells<kAxis + 1>(o, position * there[kAxis] + at, use);
      }
    }
  }

  // Calls use(output position, number of cells that its mean counts) for the windows that contain
  // input `i`.
  template <int kAxis = 0, typename Use>
  __device__ void over_windows(const int (&i)[kAxes], int position, int cells,
                               const Use& use) const {
    if constexpr (kAxis == kAxes) {
      use(position, cells);
    } else {
      int at = i[kAxis] + pad[kAxis];
      for (int k = 0; k < kernel[kAxis] && at >= 0; ++k, at -= dilation[kAxis]) {
        uint32_t left = static_cast<uint32_t>(at);
        const int o = static_cast<int>(stride[kAxis].split(left));
        if (left == 0 && o < there[kAxis]) {
          over_windows<kAxis + 1>(i, position * there[kAxis] + o,
                                  average ? cells * counted(kAxis, o) : 1, use);
        }
      }
    }
  }
};

template <typename T, int kAxes>
__global__ void __launch_bounds__(kThreads)
    axes_forward(Geometry32Nd<kAxes> g, const WidePack<T>* x, WidePack<T>* y, int32_t* index,
                 T* mask) {
  constexpr int kPack = kPackCount<T>;
  const uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= g.count) return;
  int o[kAxes], pack;
  x += g.position(i, o, pack);
  float sums[kPack] = {}, largest[kPack];
  int argmax[kPack];
  bool any = false;
#pragma unroll
  for (int k = 0; k < kPack; ++k) largest[k] = -FLT_MAX, argmax[k] = -1;
  g.over_cells(o, 0, [&](int position) {
    const WidePack<T> p = x[static_cast<int64_t>(position) * g.packs.value];
    any = true;
#pragma unroll
    for (int k = 0; k < kPack; ++k) {
      const float value = p.v[k];
      sums[k] += value;
      const bool larger = value > largest[k];
      largest[k] = larger ? value : largest[k];
      argmax[k] = larger ? position : argmax[k];
    }
  });
  WidePack<T> out;
  if (g.average) {
    int divisor = 1;
#pragma unroll
    for (int a = 0; a < kAxes; ++a) divisor *= g.counted(a, o[a]);
#pragma unroll
    for (int k = 0; k < kPack; ++k) out.v[k] = any ? sums[k] / static_cast<float>(divisor) : 0.f;
    y[i] = out;
    return;
  }
#pragma unroll
  for (int k = 0; k < kPack; ++k) out.v[k] = largest[k];
  y[i] = out;
  const int64_t first = static_cast<int64_t>(i) * kPack;
#pragma unroll
  for (int k = 0; k < kPack; k += 4) {
    if (index) {
      *reinterpret_cast<int4*>(index + first + k) =
          make_int4(argmax[k], argmax[k + 1], argmax[k + 2], argmax[k + 3]);
    }
  }
#pragma unroll
  for (int k = 0; k < kPack; ++k) {
    if (mask) mask[first + k] = static_cast<float>(argmax[k]);
  }
}

template <typename T, int kAxes>
__global__ void __launch_bounds__(kThreads)
    axes_backward(Geometry32Nd<kAxes> g, const int32_t* index, const WidePack<T>* dy,
                  WidePack<T>* dx) {
  constexpr int kPack = kPackCount<T>;
  const uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= g.count) return;
  int at[kAxes], pack, here = 0;
  const int64_t first = g.position(i, at, pack);
#pragma unroll
  for (int a = 0; a < kAxes; ++a) here = here * static_cast<int>(g.here[a].value) + at[a];
  float sums[kPack] = {};
  g.over_windows(at, 0, 1, [&](int position, int cells) {
    const int64_t from = first + static_cast<int64_t>(position) * g.packs.value;
    const WidePack<T> p = dy[from];
    if (g.average) {
#pragma unroll
      for (int k = 0; k < kPack; ++k)
        sums[k] += static_cast<float>(p.v[k]) / static_cast<float>(cells);
      return;
    }
#pragma unroll
    for (int k = 0; k < kPack; k += 4) {
      const int4 argmax = *reinterpret_cast<const int4*>(index + from * kPack + k);
      sums[k] += argmax.x == here ? static_cast<float>(p.v[k]) : 0.f;
      sums[k + 1] += argmax.y == here ? static_cast<float>(p.v[k + 1]) : 0.f;
      sums[k + 2] += argmax.z == here ? static_cast<float>(p.v[k + 2]) : 0.f;
      sums[k + 3] += argmax.w == here ? static_cast<float>(p.v[k + 3]) : 0.f;
    }
  });
  WidePack<T> out;
#pragma unroll
  for (int k = 0; k < kPack; ++k) out.v[k] = sums[k];
  dx[i] = out;
}

constexpr Refusal kNotInPacks =
    "for 2 to 4 spatial axes, channels-last, in whole packs of channels, and not in float64";

// Calls body<T, kAxes>() where the kernels support the case; x: the image, y: the pooled output.
template <typename Body>
Refusal with_axes(const Tensor& x, const Tensor& y, const Body& body) {
  const int axes = x.shape().axes() - 2;
  const auto last = [](const Tensor& t) { return t.format().order == Order::channels_last; };
  if (x.dtype() == DType::f64 || !last(x) || !last(y) || axes < 2 || axes > 4 || x.count() == 0 ||
      y.count() == 0 || std::max(x.count(), y.count()) >= Divisor::kMax)
    return kNotInPacks;
  bool chosen = false;
  on_real(x, [&]<typename T>() {
    if constexpr (!std::is_same_v<T, double>) {
      chosen = takes_packs<T>(x.shape()[1], x.raw(), y.raw());
      if (!chosen) return;
      if (axes == 2) return body.template operator()<T, 2>();
      if (axes == 3) return body.template operator()<T, 3>();
      body.template operator()<T, 4>();
    }
  });
  return chosen ? nullptr : kNotInPacks;
}

unsigned blocks_for(uint32_t count) { return ceil_div(count, kThreads); }

Refusal pool_nd_forward_gpu(Context& context, const PoolNd& window, bool average, const Tensor& x,
                            const Tensor& y, const Tensor& index, const Tensor& mask) {
  return with_axes(x, y, [&]<typename T, int kAxes>() {
    const Geometry32Nd<kAxes> g(window, average, kPackCount<T>, x, y, x);
    launch(context.gpu(), axes_forward<T, kAxes>, {blocks_for(g.count), kThreads}, g,
           x.data<WidePack<T>>(), y.data<WidePack<T>>(), index.data<int32_t>(), mask.data<T>());
  });
}

Refusal pool_nd_backward_gpu(Context& context, const PoolNd& window, bool average,
                             const Tensor& index, const Tensor& dy, const Tensor& dx) {
  return with_axes(dx, dy, [&]<typename T, int kAxes>() {
    const Geometry32Nd<kAxes> g(window, average, kPackCount<T>, dx, dx, dy);
    launch(context.gpu(), axes_backward<T, kAxes>, {blocks_for(g.count), kThreads}, g,
           index.data<int32_t>(), dy.data<WidePack<T>>(), dx.data<WidePack<T>>());
  });
}

REGISTER_KERNEL(pool_nd_forward_kernels, "channels_last", RunsOn::gpu, 20, pool_nd_forward_gpu);
REGISTER_KERNEL(pool_nd_backward_kernels, "channels_last", RunsOn::gpu, 20, pool_nd_backward_gpu);

}  // namespace
}  // namespace crema
