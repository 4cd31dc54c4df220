// Max and average pooling of channels-last tensors on the GPU. A thread has a pack of channels of
// one place, or of a small tile of them, and loads what it needs from around that all at once; a
// block has neighbours in both directions, so that windows that overlap find their values in the
// cache.
#include <cfloat>

#include "device/gpu.h"
#include "kernels/column_sums.cuh"
#include "kernels/pool_box.cuh"
#include "kernels/pool_plain.h"
#include "tensor/on.h"

namespace crema {
namespace {

using namespace pooling;

// least: only what is larger gives a gradient.
template <typename T, int kPack, int kRows, int kColumns>
__global__ void max_forward(Window w, Tiles tiles, float least, const Pack<T, kPack>* x,
                            Pack<T, kPack>* y, Pack<uint8_t, kPack>* index) {
  const Place o(w, tiles, 1);
  if (!o.inside) return;
  Compute<T> best[kPack];
  int kept[kPack];
#pragma unroll
  for (int k = 0; k < kPack; ++k) {
    best[k] = -FLT_MAX;
    kept[k] = 255;
  }
  const Corner corner = w.corner_of(o.at);
  over_box<kRows, kColumns>(
      o, w.in, w.cells_of(o.at), [&](int at) { return x[at]; },
      [&](const Pack<T, kPack>& p, int d, int h, int v) {
        const int cell = w.cell(d - corner.at[0], h - corner.at[1], v - corner.at[2]);
#pragma unroll
        for (int k = 0; k < kPack; ++k) {
          const Compute<T> value = p.v[k];
          const bool larger = value > best[k];
          best[k] = larger ? value : best[k];
          kept[k] = larger ? cell : kept[k];
        }
      });
  Pack<T, kPack> out;
  Pack<uint8_t, kPack> cells;
#pragma unroll
  for (int k = 0; k < kPack; ++k) {
    out.v[k] = best[k];
    cells.v[k] = static_cast<uint8_t>(best[k] > least ? kept[k] : 255);
  }
  const int at = o.offset(w.out, o.at[0], o.at[1], o.at[2]);
  y[at] = out;
  if (index) index[at] = cells;
}

// A thread has kTile x kTile places of dx.
template <typename T, int kPack, int kRows, int kColumns, int kTile>
__global__ void max_backward(Window w, Tiles tiles, const Pack<uint8_t, kPack>* index,
                             const Pack<T, kPack>* dy, Pack<T, kPack>* dx) {
  const Place p(w, tiles, kTile);
  if (!p.inside) return;
  Compute<T> sum[kTile][kTile][kPack] = {};
  struct Kept {
    Pack<T, kPack> dy;
    Pack<uint8_t, kPack> cell;
  };
  over_box<kRows, kColumns>(
      p, w.out, w.windows_of(p.at, kTile),
      [&](int at) {
        return Kept{dy[at], index[at]};
      },
      [&](const Kept& kept, int d, int h, int v) {
        const int o[3] = {d, h, v};
        const Corner corner = w.corner_of(o);
#pragma unroll
        for (int r = 0; r < kTile; ++r) {
#pragma unroll
          for (int c = 0; c < kTile; ++c) {
            const int row = p.at[1] + r - corner.at[1], column = p.at[2] + c - corner.at[2];
            const bool inside =
                row >= 0 && row < w.kernel[1] && column >= 0 && column < w.kernel[2];
            const int cell = w.cell(p.at[0] - corner.at[0], row, column);
            if (inside) {
#pragma unroll
              for (int k = 0; k < kPack; ++k) {
                if (kept.cell.v[k] == cell) sum[r][c][k] += static_cast<Compute<T>>(kept.dy.v[k]);
              }
            }
          }
        }
      });
#pragma unroll
  for (int r = 0; r < kTile; ++r) {
#pragma unroll
    for (int c = 0; c < kTile; ++c) {
      Pack<T, kPack> out;
#pragma unroll
      for (int k = 0; k < kPack; ++k) out.v[k] = sum[r][c][k];
      if (p.at[1] + r < w.in[1] && p.at[2] + c < w.in[2])
        dx[p.offset(w.in, p.at[0], p.at[1] + r, p.at[2] + c)] = out;
    }
  }
}

template <typename T, int kPack>
__global__ void average_forward(Window w, Tiles tiles, PoolGeometry g, const Pack<T, kPack>* x,
                                Pack<T, kPack>* y) {
  const Place o(w, tiles, 1);
  if (!o.inside) return;
  Compute<T> sum[kPack] = {};
  over_box<1, 4>(
      o, w.in, w.cells_of(o.at), [&](int at) { return x[at]; },
      [&](const Pack<T, kPack>& p, int, int, int) {
#pragma unroll
        for (int k = 0; k < kPack; ++k) sum[k] += static_cast<Compute<T>>(p.v[k]);
      });
  const auto divisor = static_cast<Compute<T>>(g.divisor(o.at[0], o.at[1], o.at[2]));
  Pack<T, kPack> out;
#pragma unroll
  for (int k = 0; k < kPack; ++k) out.v[k] = sum[k] / divisor;
  y[o.offset(w.out, o.at[0], o.at[1], o.at[2])] = out;
}

template <typename T, int kPack>
__global__ void average_backward(Window w, Tiles tiles, PoolGeometry g, const Pack<T, kPack>* dy,
                                 Pack<T, kPack>* dx) {
  const Place p(w, tiles, 1);
  if (!p.inside) return;
  Compute<T> sum[kPack] = {};
  over_box<1, 4>(
      p, w.out, w.windows_of(p.at, 1), [&](int at) { return dy[at]; },
      [&](const Pack<T, kPack>& share, int d, int h, int v) {
        const auto divisor = static_cast<Compute<T>>(g.divisor(d, h, v));
#pragma unroll
        for (int k = 0; k < kPack; ++k) sum[k] += static_cast<Compute<T>>(share.v[k]) / divisor;
      });
  Pack<T, kPack> out;
#pragma unroll
  for (int k = 0; k < kPack; ++k) out.v[k] = sum[k];
  dx[p.offset(w.in, p.at[0], p.at[1], p.at[2])] = out;
}

bool serves(const PoolGeometry& g, const PoolWindow& window, const Tensor& x, const Tensor& y) {
  const bool method = window.method == PoolMethod::average ||
                      (window.method == PoolMethod::max && window.index_dtype() == DType::u8);
  return method && g.channels_last && x.dtype() != DType::f64 &&
         std::max(x.count(), y.count()) < (int64_t{1} << 31);
}

// The usual windows are loaded at once.
template <typename T, int kPack>
auto max_forward_for(const Window& w) {
  const int most = std::max(w.kernel[1], w.kernel[2]);
  if constexpr (kPack == kPackCount<T>) {
    if (most <= 2) return max_forward<T, kPack, 2, 2>;
    if (most == 3) return max_forward<T, kPack, 3, 3>;
  }
  return max_forward<T, kPack, 1, 4>;
}

// With the tile that it is made for.
template <typename T, int kPack>
auto max_backward_for(const Window& w, int* tile) {
  const int most = std::max(w.kernel[1], w.kernel[2]);
  *tile = 1;
  if constexpr (kPack == kPackCount<T>) {
    if (most <= 3 && w.stride[1] == 2 && w.stride[2] == 2) {
      *tile = 2;
      return max_backward<T, kPack, 2, 2, 2>;
    }
    if (most <= 3) return max_backward<T, kPack, 1, 3, 1>;
  }
  return max_backward<T, kPack, 1, 4, 1>;
}

}  // namespace

bool pool_forward_gpu(Context& context, const PoolWindow& window, const Tensor& x, const Tensor& y,
                      const Tensor& index) {
  const PoolGeometry g(window, x, y);
  if (!serves(g, window, x, y)) return false;
  if (y.count() == 0) return true;
  const cudaStream_t stream = context.gpu().stream;
  on_real(x, [&]<typename T>() {
    if constexpr (!std::is_same_v<T, double>) {
      with_column_pack<T>(
          g.channels,
          [&]<int kPack>() {
            using P = Pack<T, kPack>;
            const Window w(g, kPack);
            const Launch l(w, w.out, 1);
            if (window.method == PoolMethod::max) {
              max_forward_for<T, kPack>(w)<<<l.blocks, l.threads, 0, stream>>>(
                  w, l.tiles, window.takes_relu ? 0 : -FLT_MAX, x.data<P>(), y.data<P>(),
                  index.data<Pack<uint8_t, kPack>>());
            } else {
              average_forward<T, kPack>
                  <<<l.blocks, l.threads, 0, stream>>>(w, l.tiles, g, x.data<P>(), y.data<P>());
            }
            check_cuda(cudaGetLastError(), "launching a kernel");
          },
          x.data<T>(), y.data<T>());
    }
  });
  return true;
}

bool pool_backward_gpu(Context& context, const PoolWindow& window, const Tensor& index,
                       const Tensor& dy, const Tensor& dx) {
  const PoolGeometry g(window, dx, dy);
  if (!serves(g, window, dx, dy)) return false;
  if (dx.count() == 0) return true;
  const cudaStream_t stream = context.gpu().stream;
  on_real(dx, [&]<typename T>() {
    if constexpr (!std::is_same_v<T, double>) {
      with_column_pack<T>(
          g.channels,
          [&]<int kPack>() {
            using P = Pack<T, kPack>;
            const Window w(g, kPack);
            if (window.method == PoolMethod::max) {
              int tile = 1;
              const auto kernel = max_backward_for<T, kPack>(w, &tile);
              const Launch l(w, w.in, tile);
              kernel<<<l.blocks, l.threads, 0, stream>>>(
                  w, l.tiles, index.data<Pack<uint8_t, kPack>>(), dy.data<P>(), dx.data<P>());
            } else {
              const Launch l(w, w.in, 1);
              average_backward<T, kPack>
                  <<<l.blocks, l.threads, 0, stream>>>(w, l.tiles, g, dy.data<P>(), dx.data<P>());
            }
            check_cuda(cudaGetLastError(), "launching a kernel");
          },
          dy.data<T>(), dx.data<T>());
    }
  });
  return true;
}

}  // namespace crema
