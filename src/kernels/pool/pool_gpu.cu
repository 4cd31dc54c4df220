// Max and average pooling of channels-last tensors on the GPU. A thread computes one pack of
// channels of one position; a block covers neighbors in both directions, so that overlapping
// windows hit the cache. For common window shapes there are faster kernels (pool_walk.cuh).
#include <cfloat>

#include "device/programmatic_launch.h"
#include "kernels/pool/pool_kernels.h"
#include "kernels/pool/pool_walk.cuh"
#include "kernels/reduce/column_reduce.cuh"
#include "tensor/on.h"

namespace crema {
namespace {

using namespace pooling;

template <typename T, int kPack>
__global__ void max_forward(Geometry32 g, Tiles tiles, bool only_positive, bool relu_after,
                            const Pack<T, kPack>* x, Pack<T, kPack>* y,
                            Pack<uint8_t, kPack>* index) {
  const Position o(g, tiles, 1);
  if (!o.inside) return;
  wait_for_earlier_kernels();
  Compute<T> best[kPack];
  int argmax[kPack];
#pragma unroll
  for (int k = 0; k < kPack; ++k) {
    best[k] = -FLT_MAX;
    argmax[k] = 255;
  }
  const Corner corner = g.corner_of(o.at);
  over_box<4>(
      o, g.in, g.cells_of(o.at), [&](int at) { return x[at]; },
      [&](const Pack<T, kPack>& p, int d, int h, int w) {
        const int cell = g.cell(d - corner.at[0], h - corner.at[1], w - corner.at[2]);
#pragma unroll
        for (int k = 0; k < kPack; ++k) {
          const Compute<T> value = p.v[k];
          const bool larger = value > best[k];
          best[k] = larger ? value : best[k];
          argmax[k] = larger ? cell : argmax[k];
        }
      });
  Pack<T, kPack> out;
  Pack<uint8_t, kPack> cells;
#pragma unroll
  for (int k = 0; k < kPack; ++k) {
    out.v[k] = relu_after && best[k] <= 0 ? 0 : best[k];
    cells.v[k] = static_cast<uint8_t>(!only_positive || best[k] > 0 ? argmax[k] : 255);
  }
  let_next_kernel_start();
  const int at = o.offset(g.out, o.at[0], o.at[1], o.at[2]);
  y[at] = out;
  if (index) index[at] = cells;
}

template <typename T, int kPack>
__global__ void max_backward(Geometry32 g, Tiles tiles, const Pack<uint8_t, kPack>* index,
                             const Pack<T, kPack>* dy, Pack<T, kPack>* dx) {
  const Position p(g, tiles, 1);
  if (!p.inside) return;
  wait_for_earlier_kernels();
  Compute<T> sum[kPack] = {};
  struct Output {
    Pack<T, kPack> dy;
    Pack<uint8_t, kPack> argmax;
  };
  over_box<4>(
      p, g.out, g.windows_of(p.at),
      [&](int at) {
        return Output{dy[at], index[at]};
      },
      [&](const Output& output, int d, int h, int w) {
        const Corner corner = g.corner_of({d, h, w});
        const int cell =
            g.cell(p.at[0] - corner.at[0], p.at[1] - corner.at[1], p.at[2] - corner.at[2]);
#pragma unroll
        for (int k = 0; k < kPack; ++k) {
          if (output.argmax.v[k] == cell) sum[k] += static_cast<Compute<T>>(output.dy.v[k]);
        }
      });
  Pack<T, kPack> out;
#pragma unroll
  for (int k = 0; k < kPack; ++k) out.v[k] = sum[k];
  let_next_kernel_start();
  dx[p.offset(g.in, p.at[0], p.at[1], p.at[2])] = out;
}

// Windows that neither overlap nor leave gaps: each output writes the whole window of dx.
template <typename T, int kPack>
__global__ void max_backward_non_overlapping(Geometry32 g, Tiles tiles,
                                             const Pack<uint8_t, kPack>* index,
                                             const Pack<T, kPack>* dy, Pack<T, kPack>* dx) {
  const Position o(g, tiles, 1);
  if (!o.inside) return;
  wait_for_earlier_kernels();
  const int from = o.offset(g.out, o.at[0], o.at[1], o.at[2]);
  const Pack<T, kPack> given = dy[from];
  const Pack<uint8_t, kPack> argmax = index[from];
  let_next_kernel_start();
  const Box box = g.cells_of(o.at);
  const Corner corner = g.corner_of(o.at);
  for (int d = box.begin[0]; d < box.end[0]; ++d) {
    for (int h = box.begin[1]; h < box.end[1]; ++h) {
      for (int w = box.begin[2]; w < box.end[2]; ++w) {
        const int cell = g.cell(d - corner.at[0], h - corner.at[1], w - corner.at[2]);
        Pack<T, kPack> out;
#pragma unroll
        for (int k = 0; k < kPack; ++k) out.v[k] = argmax.v[k] == cell ? given.v[k] : T(0);
        dx[o.offset(g.in, d, h, w)] = out;
      }
    }
  }
}

bool non_overlapping(const Geometry32& g) {
  bool all = true;
  for (int a = 0; a < 3; ++a)
    all = all && g.kernel[a] == g.stride[a] && g.pad[a] == 0 && g.out[a] * g.stride[a] >= g.in[a];
  return all;
}

template <typename T, int kPack>
__global__ void average_forward(Geometry32 g, Tiles tiles, const Pack<T, kPack>* x,
                                Pack<T, kPack>* y) {
  const Position o(g, tiles, 1);
  if (!o.inside) return;
  wait_for_earlier_kernels();
  Compute<T> sum[kPack] = {};
  over_box<4>(
      o, g.in, g.cells_of(o.at), [&](int at) { return x[at]; },
      [&](const Pack<T, kPack>& p, int, int, int) {
#pragma unroll
        for (int k = 0; k < kPack; ++k) sum[k] += static_cast<Compute<T>>(p.v[k]);
      });
  const Compute<T> inverse_divisor = g.inverse_divisor(o.at[0], o.at[1], o.at[2]);
  Pack<T, kPack> out;
#pragma unroll
  for (int k = 0; k < kPack; ++k) out.v[k] = sum[k] * inverse_divisor;
  let_next_kernel_start();
  y[o.offset(g.out, o.at[0], o.at[1], o.at[2])] = out;
}

template <typename T, int kPack>
__global__ void average_backward(Geometry32 g, Tiles tiles, const Pack<T, kPack>* dy,
                                 Pack<T, kPack>* dx) {
  const Position p(g, tiles, 1);
  if (!p.inside) return;
  wait_for_earlier_kernels();
  Compute<T> sum[kPack] = {};
  over_box<4>(
      p, g.out, g.windows_of(p.at), [&](int at) { return dy[at]; },
      [&](const Pack<T, kPack>& given, int d, int h, int w) {
        const Compute<T> inverse_divisor = g.inverse_divisor(d, h, w);
#pragma unroll
        for (int k = 0; k < kPack; ++k)
          sum[k] += static_cast<Compute<T>>(given.v[k]) * inverse_divisor;
      });
  Pack<T, kPack> out;
#pragma unroll
  for (int k = 0; k < kPack; ++k) out.v[k] = sum[k];
  let_next_kernel_start();
  dx[p.offset(g.in, p.at[0], p.at[1], p.at[2])] = out;
}

bool supports(const PoolGeometry& g, const PoolWindow& window, const Tensor& x, const Tensor& y) {
  const bool method = window.method == PoolMethod::average ||
                      (window.method == PoolMethod::max && window.index_dtype() == DType::u8);
  return method && g.channels_last && x.dtype() != DType::f64 &&
         std::max(x.count(), y.count()) < (int64_t{1} << 31);
}

// Calls body<window, step>() where the walking kernels, which need whole packs, support the case;
// else returns false.
template <typename T, int kPack, typename Body>
bool walks(const PoolWindow& window, const Body& body) {
  if constexpr (kPack == kPackCount<T>) return with_walk(window, body);
  return false;
}

constexpr Refusal kNotSupported =
    "for max and average without a mask, channels-last, and not in float64";

// Calls body<T, kPack>(geometry) for the widest pack; a refusal where the kernels in this file do not
// support the case. x: the larger tensor, y: the pooled one.
template <typename Body>
Refusal with_geometry(const PoolWindow& window, const Tensor& x, const Tensor& y,
                      const Body& body) {
  const PoolGeometry g(window, x, y);
  if (!supports(g, window, x, y)) return kNotSupported;
  if (x.count() == 0 || y.count() == 0) return nullptr;
  on_real(x, [&]<typename T>() {
    if constexpr (!std::is_same_v<T, double>) {
      with_column_pack<T>(
          g.channels,
          [&]<int kPack>() { body.template operator()<T, kPack>(Geometry32(g, kPack)); },
          x.data<T>(), y.data<T>());
    }
  });
  return nullptr;
}

Refusal pool_forward_gpu(Context& context, const PoolWindow& window, const PassRandom& /*random*/,
                         const Tensor& x, const Tensor& y, const Tensor& index,
                         const Tensor& mask) {
  if (mask) return kNotSupported;
  const Gpu& gpu = context.gpu();
  return with_geometry(window, x, y, [&]<typename T, int kPack>(const Geometry32& g) {
    using P = Pack<T, kPack>;
    const bool walked = walks<T, kPack>(window, [&]<int kWindow, int kStep>() {
      const Launch l(g, g.out, kWalkRows);
      launch_programmatic(gpu, walk_forward<T, kWindow, kStep>, {l.blocks, l.threads}, g, l.tiles,
                          window.only_positive(), window.relu_after, x.data<Words>(),
                          y.data<Words>(), index.data<Cells<T>>());
    });
    if (walked) return;
    const Launch l(g, g.out, 1);
    if (window.method == PoolMethod::max) {
      launch_programmatic(gpu, max_forward<T, kPack>, {l.blocks, l.threads}, g, l.tiles,
                          window.only_positive(), window.relu_after, x.data<P>(), y.data<P>(),
                          index.data<Pack<uint8_t, kPack>>());
    } else {
      launch_programmatic(gpu, average_forward<T, kPack>, {l.blocks, l.threads}, g, l.tiles,
                          x.data<P>(), y.data<P>());
    }
  });
}

Refusal pool_backward_gpu(Context& context, const PoolWindow& window, const Tensor& /*x*/,
                          const Tensor& index, const Tensor& dy, const Tensor& dx) {
  const Gpu& gpu = context.gpu();
  return with_geometry(window, dx, dy, [&]<typename T, int kPack>(const Geometry32& g) {
    using P = Pack<T, kPack>;
    const bool walked = walks<T, kPack>(window, [&]<int kWindow, int kStep>() {
      const Launch l = launch_of_gradients(g);
      launch_programmatic(gpu, walk_backward<T, kWindow, kStep>, {l.blocks, l.threads}, g, l.tiles,
                          index.data<Cells<T>>(), dy.data<P>(), dx.data<P>());
    });
    if (walked) return;
    if (window.method == PoolMethod::max && non_overlapping(g)) {
      const Launch l(g, g.out, 1);
      launch_programmatic(gpu, max_backward_non_overlapping<T, kPack>, {l.blocks, l.threads}, g,
                          l.tiles, index.data<Pack<uint8_t, kPack>>(), dy.data<P>(), dx.data<P>());
      return;
    }
    const Launch l(g, g.in, 1);
    if (window.method == PoolMethod::max) {
      launch_programmatic(gpu, max_backward<T, kPack>, {l.blocks, l.threads}, g, l.tiles,
                          index.data<Pack<uint8_t, kPack>>(), dy.data<P>(), dx.data<P>());
    } else {
      launch_programmatic(gpu, average_backward<T, kPack>, {l.blocks, l.threads}, g, l.tiles,
                          dy.data<P>(), dx.data<P>());
    }
  });
}

REGISTER_KERNEL(pool_forward_kernels, "channels_last", RunsOn::gpu, 20, pool_forward_gpu);
REGISTER_KERNEL(pool_backward_kernels, "channels_last", RunsOn::gpu, 20, pool_backward_gpu);

}  // namespace
}  // namespace crema
