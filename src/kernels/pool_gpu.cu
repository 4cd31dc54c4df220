// Max and average pooling of channels-last tensors on the GPU: a block has a row of places, a
// thread one of them and a pack of its channels, so that every access is wide, neighbours read
// neighbours, and hardly anything is divided.
#include <cfloat>

#include "device/gpu.h"
#include "kernels/column_sums.cuh"
#include "kernels/pool_geometry.h"
#include "kernels/pool_plain.h"
#include "tensor/on.h"

namespace crema {
namespace {

// The geometry in 32 bits.
struct Window {
  int in[3], out[3], kernel[3], stride[3], pad[3];
  int packs, rows;  // rows: images x depths x heights of what is written

  Window(const PoolGeometry& g, int pack, const int64_t* extent) {
    for (int a = 0; a < 3; ++a) {
      in[a] = static_cast<int>(g.in[a]);
      out[a] = static_cast<int>(g.out[a]);
      kernel[a] = static_cast<int>(g.kernel[a]);
      stride[a] = static_cast<int>(g.stride[a]);
      pad[a] = static_cast<int>(g.pad[a]);
    }
    packs = static_cast<int>(g.channels / pack);
    rows = static_cast<int>(g.images * extent[0] * extent[1]);
  }
  __device__ int first(int axis, int o) const { return max(o * stride[axis] - pad[axis], 0); }
  __device__ int last(int axis, int o) const {
    return min(o * stride[axis] - pad[axis] + kernel[axis], in[axis]);
  }
  __device__ int from(int axis, int i) const {
    const int at = i + pad[axis] - kernel[axis];
    return at < 0 ? 0 : at / stride[axis] + 1;
  }
  __device__ int to(int axis, int i) const {
    return min((i + pad[axis]) / stride[axis] + 1, out[axis]);
  }
};

// A thread's place: image, three coordinates in `extent`, pack. Blocks: x along the rows' length,
// y and z over rows.
struct Place {
  int pack, image, at[3];
  int64_t index;  // of its pack in what is written
  bool inside;
  __device__ Place(const Window& w, const int* extent) {
    const int row = static_cast<int>(blockIdx.z * gridDim.y + blockIdx.y);
    const int along = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    const int length = extent[2] * w.packs;
    inside = row < w.rows && along < length;
    at[2] = along / w.packs;
    pack = along - at[2] * w.packs;
    at[1] = row % extent[1];
    const int plane = row / extent[1];
    at[0] = extent[0] == 1 ? 0 : plane % extent[0];
    image = extent[0] == 1 ? plane : plane / extent[0];
    index = static_cast<int64_t>(row) * length + along;
  }
  // Of the pack at (d, h, w) of the same image.
  __device__ int64_t offset(const Window& w, const int* extent, int d, int h, int x) const {
    return (((static_cast<int64_t>(image) * extent[0] + d) * extent[1] + h) * extent[2] + x) *
               w.packs +
           pack;
  }
};

template <typename T, int kPack>
__global__ void max_forward(Window w, const Pack<T, kPack>* x, Pack<T, kPack>* y,
                            Pack<uint8_t, kPack>* index) {
  const Place o(w, w.out);
  if (!o.inside) return;
  Compute<T> best[kPack];
  uint8_t cell[kPack];
#pragma unroll
  for (int k = 0; k < kPack; ++k) {
    best[k] = -FLT_MAX;
    cell[k] = 255;
  }
  for (int d = w.first(0, o.at[0]); d < w.last(0, o.at[0]); ++d) {
    for (int h = w.first(1, o.at[1]); h < w.last(1, o.at[1]); ++h) {
      for (int v = w.first(2, o.at[2]); v < w.last(2, o.at[2]); ++v) {
        const Pack<T, kPack> p = x[o.offset(w, w.in, d, h, v)];
        const int inside = ((d + w.pad[0] - o.at[0] * w.stride[0]) * w.kernel[1] + h + w.pad[1] -
                            o.at[1] * w.stride[1]) *
                               w.kernel[2] +
                           v + w.pad[2] - o.at[2] * w.stride[2];
#pragma unroll
        for (int k = 0; k < kPack; ++k) {
          const Compute<T> value = p.v[k];
          if (value > best[k]) {
            best[k] = value;
            cell[k] = static_cast<uint8_t>(inside);
          }
        }
      }
    }
  }
  Pack<T, kPack> out;
  Pack<uint8_t, kPack> cells;
#pragma unroll
  for (int k = 0; k < kPack; ++k) {
    out.v[k] = best[k];
    cells.v[k] = cell[k];
  }
  y[o.index] = out;
  if (index) index[o.index] = cells;
}

template <typename T, int kPack>
__global__ void max_backward(Window w, const Pack<uint8_t, kPack>* index, const Pack<T, kPack>* dy,
                             Pack<T, kPack>* dx) {
  const Place p(w, w.in);
  if (!p.inside) return;
  Compute<T> sum[kPack] = {};
  for (int d = w.from(0, p.at[0]); d < w.to(0, p.at[0]); ++d) {
    for (int h = w.from(1, p.at[1]); h < w.to(1, p.at[1]); ++h) {
      for (int v = w.from(2, p.at[2]); v < w.to(2, p.at[2]); ++v) {
        const int64_t o = p.offset(w, w.out, d, h, v);
        const Pack<uint8_t, kPack> cells = index[o];
        const Pack<T, kPack> g = dy[o];
        const int inside = ((p.at[0] + w.pad[0] - d * w.stride[0]) * w.kernel[1] + p.at[1] +
                            w.pad[1] - h * w.stride[1]) *
                               w.kernel[2] +
                           p.at[2] + w.pad[2] - v * w.stride[2];
#pragma unroll
        for (int k = 0; k < kPack; ++k) {
          if (cells.v[k] == inside) sum[k] += static_cast<Compute<T>>(g.v[k]);
        }
      }
    }
  }
  Pack<T, kPack> out;
#pragma unroll
  for (int k = 0; k < kPack; ++k) out.v[k] = sum[k];
  dx[p.index] = out;
}

template <typename T, int kPack>
__global__ void average_forward(Window w, PoolGeometry g, const Pack<T, kPack>* x,
                                Pack<T, kPack>* y) {
  const Place o(w, w.out);
  if (!o.inside) return;
  Compute<T> sum[kPack] = {};
  for (int d = w.first(0, o.at[0]); d < w.last(0, o.at[0]); ++d) {
    for (int h = w.first(1, o.at[1]); h < w.last(1, o.at[1]); ++h) {
      for (int v = w.first(2, o.at[2]); v < w.last(2, o.at[2]); ++v) {
        const Pack<T, kPack> p = x[o.offset(w, w.in, d, h, v)];
#pragma unroll
        for (int k = 0; k < kPack; ++k) sum[k] += static_cast<Compute<T>>(p.v[k]);
      }
    }
  }
  const auto divisor = static_cast<Compute<T>>(g.divisor(o.at[0], o.at[1], o.at[2]));
  Pack<T, kPack> out;
#pragma unroll
  for (int k = 0; k < kPack; ++k) out.v[k] = sum[k] / divisor;
  y[o.index] = out;
}

template <typename T, int kPack>
__global__ void average_backward(Window w, PoolGeometry g, const Pack<T, kPack>* dy,
                                 Pack<T, kPack>* dx) {
  const Place p(w, w.in);
  if (!p.inside) return;
  Compute<T> sum[kPack] = {};
  for (int d = w.from(0, p.at[0]); d < w.to(0, p.at[0]); ++d) {
    for (int h = w.from(1, p.at[1]); h < w.to(1, p.at[1]); ++h) {
      for (int v = w.from(2, p.at[2]); v < w.to(2, p.at[2]); ++v) {
        const Pack<T, kPack> share = dy[p.offset(w, w.out, d, h, v)];
        const auto divisor = static_cast<Compute<T>>(g.divisor(d, h, v));
#pragma unroll
        for (int k = 0; k < kPack; ++k) sum[k] += static_cast<Compute<T>>(share.v[k]) / divisor;
      }
    }
  }
  Pack<T, kPack> out;
#pragma unroll
  for (int k = 0; k < kPack; ++k) out.v[k] = sum[k];
  dx[p.index] = out;
}

bool serves(const PoolGeometry& g, const PoolWindow& window, const Tensor& x, const Tensor& y) {
  const bool method = window.method == PoolMethod::average ||
                      (window.method == PoolMethod::max && window.index_dtype() == DType::u8);
  return method && g.channels_last && x.dtype() != DType::f64 &&
         std::max(x.count(), y.count()) < (int64_t{1} << 31);
}

// For rows of `length` places.
struct Launch {
  dim3 grid;
  unsigned threads;
  Launch(const Window& w, int length) {
    const auto along = static_cast<unsigned>(length * w.packs);
    const unsigned steps = (along + 255) / 256;
    threads = ((along + steps - 1) / steps + 31) / 32 * 32;
    const auto rows = static_cast<unsigned>(w.rows);
    const unsigned layers = (rows + 32767) / 32768;
    grid = dim3((along + threads - 1) / threads, (rows + layers - 1) / layers, layers);
  }
};

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
            const Window w(g, kPack, g.out);
            const Launch l(w, w.out[2]);
            if (window.method == PoolMethod::max) {
              max_forward<T, kPack><<<l.grid, l.threads, 0, stream>>>(
                  w, x.data<P>(), y.data<P>(), index.data<Pack<uint8_t, kPack>>());
            } else {
              average_forward<T, kPack>
                  <<<l.grid, l.threads, 0, stream>>>(w, g, x.data<P>(), y.data<P>());
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
            const Window w(g, kPack, g.in);
            const Launch l(w, w.in[2]);
            if (window.method == PoolMethod::max) {
              max_backward<T, kPack><<<l.grid, l.threads, 0, stream>>>(
                  w, index.data<Pack<uint8_t, kPack>>(), dy.data<P>(), dx.data<P>());
            } else {
              average_backward<T, kPack>
                  <<<l.grid, l.threads, 0, stream>>>(w, g, dy.data<P>(), dx.data<P>());
            }
            check_cuda(cudaGetLastError(), "launching a kernel");
          },
          dy.data<T>(), dx.data<T>());
    }
  });
  return true;
}

}  // namespace crema
