// Local response normalization across the channels of channels-last tensors on the GPU. The usual
// sizes, 3 and 5, work in registers: a thread has a pack of channels and the channels on both
// sides. For other sizes a block takes some positions and keeps their channels in shared memory.
#include <algorithm>

#include "base/ceil_div.h"
#include "device/programmatic_launch.h"
#include "kernels/norm/lrn_geometry.h"
#include "kernels/reduce/column_reduce.cuh"
#include "tensor/on.h"

namespace crema {
namespace {

constexpr int kThreads = 256;
// Threads per block of the register kernel: small blocks find room next to those of weight gradient
// kernels, which are queued earlier and leave few registers.
constexpr int kFewThreads = 128;

struct LrnRows {
  int64_t rows;
  int channels, half, rows_each;
  float alpha, beta, k;

  // s ^ -beta.
  __device__ float power(float s) const {
    if (beta == 0.75f) {
      const float root = rsqrtf(s);
      return root * sqrtf(root);
    }
    return powf(s, -beta);
  }
};

// Shared memory has a line of channels + 2 * half floats per position, zero at both ends. Calls
// visit(offset in shared memory of a pack's leftmost neighbor, offset in x) for each of this
// thread's packs.
template <int kPack, typename Visit>
__device__ void for_packs(const LrnRows& r, const Visit& visit) {
  const int64_t first = static_cast<int64_t>(blockIdx.x) * r.rows_each;
  const int rows = static_cast<int>(min(static_cast<int64_t>(r.rows_each), r.rows - first));
  const int packs = r.channels / kPack;
  for (int i = threadIdx.x; i < rows * packs; i += kThreads) {
    const int row = i / packs, channel = i % packs * kPack;
    visit(row * (r.channels + 2 * r.half) + channel, (first + row) * r.channels + channel);
  }
}

__device__ void clear_borders(const LrnRows& r, float* memory) {
  const int width = r.channels + 2 * r.half;
  for (int i = threadIdx.x; i < r.rows_each * 2 * r.half; i += kThreads) {
    const int row = i / (2 * r.half), at = i % (2 * r.half);
    memory[row * width + (at < r.half ? at : r.channels + at)] = 0;
  }
}

// The sums over the neighborhoods of kPack channels; `line` points to the leftmost neighbor of the
// first channel.
template <int kPack, typename Term>
__device__ void neighborhoods(const float* line, int half, const Term& term, float (&sums)[kPack]) {
  float sum = 0;
  for (int j = 0; j <= 2 * half; ++j) sum += term(line[j]);
  sums[0] = sum;
#pragma unroll
  for (int k = 1; k < kPack; ++k) {
    sum = 0;
    for (int j = k; j <= k + 2 * half; ++j) sum += term(line[j]);
    sums[k] = sum;
  }
}

struct Square {
  __device__ float operator()(float x) const { return x * x; }
};
struct Value {
  __device__ float operator()(float x) const { return x; }
};

// Reads the block's lines of x into shared memory.
template <typename T, int kPack>
__device__ void load_lines(const LrnRows& r, const T* x, float* values) {
  clear_borders(r, values);
  for_packs<kPack>(r, [&](int line, int64_t at) {
    const auto p = *reinterpret_cast<const Pack<T, kPack>*>(x + at);
#pragma unroll
    for (int k = 0; k < kPack; ++k) values[line + r.half + k] = p.v[k];
  });
}

template <typename T, int kPack>
__global__ void forward(LrnRows r, const T* x, T* y) {
  extern __shared__ float values[];
  using P = Pack<T, kPack>;
  load_lines<T, kPack>(r, x, values);
  __syncthreads();
  for_packs<kPack>(r, [&](int line, int64_t at) {
    float sums[kPack];
    neighborhoods(values + line, r.half, Square{}, sums);
    P out;
#pragma unroll
    for (int k = 0; k < kPack; ++k)
      out.v[k] = values[line + r.half + k] * r.power(r.k + r.alpha * sums[k]);
    *reinterpret_cast<P*>(y + at) = out;
  });
}

template <typename T, int kPack>
__global__ void backward(LrnRows r, const T* x, const T* dy, T* dx) {
  extern __shared__ float values[];
  float* const ratios = values + r.rows_each * (r.channels + 2 * r.half);
  using P = Pack<T, kPack>;
  clear_borders(r, ratios);
  load_lines<T, kPack>(r, x, values);
  __syncthreads();
  // ratio = dy * x * s ^ (-beta - 1)
  for_packs<kPack>(r, [&](int line, int64_t at) {
    float sums[kPack];
    neighborhoods(values + line, r.half, Square{}, sums);
    const P g = *reinterpret_cast<const P*>(dy + at);
#pragma unroll
    for (int k = 0; k < kPack; ++k) {
      const float s = r.k + r.alpha * sums[k];
      ratios[line + r.half + k] =
          static_cast<float>(g.v[k]) * values[line + r.half + k] * r.power(s) / s;
    }
  });
  __syncthreads();
  for_packs<kPack>(r, [&](int line, int64_t at) {
    float sums[kPack], ratio_sums[kPack];
    neighborhoods(values + line, r.half, Square{}, sums);
    neighborhoods(ratios + line, r.half, Value{}, ratio_sums);
    P g = *reinterpret_cast<const P*>(dy + at);
#pragma unroll
    for (int k = 0; k < kPack; ++k) {
      g.v[k] = static_cast<float>(g.v[k]) * r.power(r.k + r.alpha * sums[k]) -
               2 * r.alpha * r.beta * values[line + r.half + k] * ratio_sums[k];
    }
    *reinterpret_cast<P*>(dx + at) = g;
  });
}

// A thread's own pack of channels with those on both sides, zero outside the row: enough for
// neighborhoods of neighborhoods of up to kPack / 2 channels to each side, all in registers.
template <typename T, int kPack>
struct Stretch {
  float v[3 * kPack];
  __device__ Stretch(const T* row, int channel, int channels) {
    using P = Pack<T, kPack>;
#pragma unroll
    for (int side = 0; side < 3; ++side) {
      const int at = channel + (side - 1) * kPack;
      P p;
      const bool inside = at >= 0 && at < channels;
      if (inside) p = *reinterpret_cast<const P*>(row + at);
#pragma unroll
      for (int k = 0; k < kPack; ++k) v[side * kPack + k] = inside ? static_cast<float>(p.v[k]) : 0;
    }
  }
};

template <typename T, int kPack, int kHalf, bool kBackward>
__global__ void in_registers(LrnRows r, const T* x, const T* dy, T* out) {
  using P = Pack<T, kPack>;
  const int packs = r.channels / kPack;
  const int64_t i = blockIdx.x * static_cast<int64_t>(kFewThreads) + threadIdx.x;
  if (i >= r.rows * packs) return;
  wait_for_earlier_kernels();
  const int64_t row = i / packs;
  const int channel = static_cast<int>(i - row * packs) * kPack;
  const T* const line = x + row * r.channels;
  const Stretch<T, kPack> near(line, channel, r.channels);
  // s of the channels from kHalf before the pack to kHalf after it (forward: of the pack).
  constexpr int kReach = kBackward ? kHalf : 0, kCount = kPack + 2 * kReach;
  float power[kCount], scale[kCount];
#pragma unroll
  for (int k = 0; k < kCount; ++k) {
    float sum = 0;
#pragma unroll
    for (int j = -kHalf; j <= kHalf; ++j) {
      const float value = near.v[kPack - kReach + k + j];
      sum += value * value;
    }
    scale[k] = r.k + r.alpha * sum;
    power[k] = r.power(scale[k]);
  }
  P result;
  if constexpr (kBackward) {
    const Stretch<T, kPack> g(dy + row * r.channels, channel, r.channels);
    float ratio[kCount];
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      const int at = kPack - kReach + k;
      ratio[k] = g.v[at] * near.v[at] * __fdividef(power[k], scale[k]);
    }
#pragma unroll
    for (int k = 0; k < kPack; ++k) {
      float ratio_sum = 0;
#pragma unroll
      for (int j = 0; j <= 2 * kHalf; ++j) ratio_sum += ratio[k + j];
      result.v[k] =
          g.v[kPack + k] * power[k + kReach] - 2 * r.alpha * r.beta * near.v[kPack + k] * ratio_sum;
    }
  } else {
#pragma unroll
    for (int k = 0; k < kPack; ++k) result.v[k] = near.v[kPack + k] * power[k];
  }
  let_next_kernel_start();
  *reinterpret_cast<P*>(out + row * r.channels + channel) = result;
}

// Returns false where it does not support the neighborhood or the packs.
template <typename T, int kPack, bool kBackward>
bool run_in_registers(Context& context, const LrnRows& r, const T* x, const T* dy, T* out) {
  if constexpr (kPack < 4) {
    return false;
  } else {
    const int64_t threads = r.rows * (r.channels / kPack);
    const auto blocks = static_cast<unsigned>(ceil_div(threads, kFewThreads));
    const Gpu& gpu = context.gpu();
    if (r.half == 1) {
      launch_programmatic(gpu, in_registers<T, kPack, 1, kBackward>, {blocks, kFewThreads}, r, x,
                          dy, out);
    } else if (r.half == 2) {
      launch_programmatic(gpu, in_registers<T, kPack, 2, kBackward>, {blocks, kFewThreads}, r, x,
                          dy, out);
    } else {
      return false;
    }
    return true;
  }
}

// The layout for tensors like x with `arrays` floats per value in shared memory; rows_each 0:
// unsupported.
LrnRows rows_for(const LrnWindow& window, const Tensor& x, int arrays) {
  const LrnGeometry g(window, x);
  LrnRows r{};
  if (!window.across_channels || g.columns.stride != 1 || x.dtype() == DType::f64) return r;
  r.channels = static_cast<int>(g.columns.extent);
  r.rows = x.count() / std::max(1, r.channels);
  r.half = static_cast<int>(g.columns.half);
  r.alpha = static_cast<float>(window.alpha);
  r.beta = static_cast<float>(window.beta);
  r.k = static_cast<float>(window.k);
  constexpr int kMaxFloats = 12 * 1024;
  const int line = (r.channels + 2 * r.half) * arrays;
  if (line <= kMaxFloats) r.rows_each = std::clamp(4096 / line, 1, 64);
  return r;
}

// Calls launch<T, kPack>(rows, blocks, shared bytes) with the widest pack that all tensors allow.
template <typename Launch, typename... Tensors>
Refusal serve(const LrnWindow& window, const Tensor& x, int arrays, const Launch& launch,
              const Tensors&... others) {
  const LrnRows r = rows_for(window, x, arrays);
  if (r.rows_each == 0) return "for few channels, channels-last, and not in float64";
  if (r.rows == 0) return nullptr;
  const auto blocks = static_cast<unsigned>(ceil_div(r.rows, r.rows_each));
  const size_t shared = sizeof(float) * arrays * r.rows_each * (r.channels + 2 * r.half);
  on_real(x, [&]<typename T>() {
    if constexpr (!std::is_same_v<T, double>) {
      with_column_pack<T>(
          r.channels, [&]<int kPack>() { launch.template operator()<T, kPack>(r, blocks, shared); },
          x.raw(), others.raw()...);
    }
  });
  return nullptr;
}

Refusal lrn_forward_gpu(Context& context, const LrnWindow& window, const Tensor& x,
                        const Tensor& y) {
  const Gpu& gpu = context.gpu();
  return serve(
      window, x, 1,
      [&]<typename T, int kPack>(const LrnRows& r, unsigned blocks, size_t shared) {
        if (run_in_registers<T, kPack, false>(context, r, x.data<T>(), nullptr, y.data<T>()))
          return;
        launch(gpu, forward<T, kPack>, {blocks, kThreads, shared}, r, x.data<T>(), y.data<T>());
      },
      y);
}

Refusal lrn_backward_gpu(Context& context, const LrnWindow& window, const Tensor& x,
                         const Tensor& dy, const Tensor& dx, const Tensor& /*ratios*/) {
  const Gpu& gpu = context.gpu();
  return serve(
      window, x, 2,
      [&]<typename T, int kPack>(const LrnRows& r, unsigned blocks, size_t shared) {
        if (run_in_registers<T, kPack, true>(context, r, x.data<T>(), dy.data<T>(), dx.data<T>()))
          return;
        launch(gpu, backward<T, kPack>, {blocks, kThreads, shared}, r, x.data<T>(), dy.data<T>(),
               dx.data<T>());
      },
      dy, dx);
}

REGISTER_KERNEL(lrn_forward_kernels, "cuda", RunsOn::gpu, 20, lrn_forward_gpu);
REGISTER_KERNEL(lrn_backward_kernels, "cuda", RunsOn::gpu, 20, lrn_backward_gpu);

}  // namespace
}  // namespace crema
