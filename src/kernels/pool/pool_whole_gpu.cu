// Global average pooling on the GPU, channels-last. A block has 32 packs of channels of one image,
// and its warps split the pixels.
#include "base/ceil_div.h"
#include "device/launch.h"
#include "kernels/pool/pool_geometry.h"
#include "kernels/pool/pool_kernels.h"
#include "kernels/reduce/column_reduce.cuh"
#include "tensor/on.h"

namespace crema {
namespace {

constexpr int kLanes = 32, kWarps = 8;

// What a thread reads: the offset of its pack in its image, in packs; past the last pack it is
// idle.
struct Lane {
  int64_t image;
  int pack;
  __device__ explicit Lane(int packs) {
    const int groups = (packs + kLanes - 1) / kLanes;
    image = blockIdx.x / groups;
    pack = static_cast<int>(blockIdx.x % groups) * kLanes + static_cast<int>(threadIdx.x) % kLanes;
  }
};

template <typename T, int kPack>
__global__ void __launch_bounds__(kLanes* kWarps)
    mean_of_images(int positions, int packs, const Pack<T, kPack>* x, T* y) {
  __shared__ float shared[kPack][kWarps][kLanes + 1];
  const Lane at(packs);
  const int lane = static_cast<int>(threadIdx.x) % kLanes,
            warp = static_cast<int>(threadIdx.x) / kLanes;
  float sums[kPack] = {};
  if (at.pack < packs) {
    x += at.image * positions * packs + at.pack;
#pragma unroll 8
    for (int position = warp; position < positions; position += kWarps) {
      const Pack<T, kPack> p = x[static_cast<int64_t>(position) * packs];
#pragma unroll
      for (int k = 0; k < kPack; ++k) sums[k] += static_cast<float>(p.v[k]);
    }
  }
#pragma unroll
  for (int k = 0; k < kPack; ++k) shared[k][warp][lane] = sums[k];
  __syncthreads();
  const int first = (at.pack - lane) * kPack;
  for (int c = static_cast<int>(threadIdx.x); c < kLanes * kPack; c += kLanes * kWarps) {
    float sum = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) sum += shared[c % kPack][w][c / kPack];
    if (first + c < packs * kPack)
      y[at.image * packs * kPack + first + c] = sum / static_cast<float>(positions);
  }
}

template <typename T, int kPack>
__global__ void __launch_bounds__(kLanes* kWarps)
    spread_means(int positions, int packs, const Pack<T, kPack>* dy, Pack<T, kPack>* dx) {
  const Lane at(packs);
  if (at.pack >= packs) return;
  Pack<T, kPack> p = dy[at.image * packs + at.pack];
#pragma unroll
  for (int k = 0; k < kPack; ++k)
    p.v[k] = static_cast<float>(p.v[k]) / static_cast<float>(positions);
  dx += at.image * positions * packs + at.pack;
#pragma unroll 4
  for (int position = static_cast<int>(threadIdx.x) / kLanes; position < positions;
       position += kWarps)
    dx[static_cast<int64_t>(position) * packs] = p;
}

constexpr Refusal kNotWhole = "for averages over whole images of many channels";

// Calls body<T, kPack>(positions, packs, blocks) where windows are whole images of many channels;
// else returns a refusal. x: the images, y: their means.
template <typename Body>
Refusal with_images(const PoolWindow& window, const Tensor& x, const Tensor& y, const Body& body) {
  const PoolGeometry g(window, x, y);
  bool whole = window.method == PoolMethod::average && g.channels_last && x.dtype() != DType::f64;
  for (int axis = 0; axis < 3; ++axis)
    whole = whole && g.out[axis] == 1 && g.kernel[axis] == g.in[axis] && g.pad[axis] == 0;
  if (!whole || x.count() >= int64_t{1} << 31) return kNotWhole;
  bool chosen = false;
  on_real(x, [&]<typename T>() {
    if constexpr (!std::is_same_v<T, double>) {
      with_column_pack<T>(
          g.channels,
          [&]<int kPack>() {
            const int packs = static_cast<int>(g.channels / kPack);
            const int64_t blocks = g.images * ceil_div(packs, kLanes);
            chosen = packs >= kLanes && blocks > 0;
            if (chosen) {
              body.template operator()<T, kPack>(static_cast<int>(g.in[0] * g.in[1] * g.in[2]),
                                                 packs, static_cast<unsigned>(blocks));
            }
          },
          x.data<T>(), y.data<T>());
    }
  });
  return chosen ? nullptr : kNotWhole;
}

Refusal pool_whole_forward_gpu(Context& context, const PoolWindow& window,
                               const PassRandom& /*random*/, const Tensor& x, const Tensor& y,
                               const Tensor& /*index*/, const Tensor& mask) {
  if (mask) return kNotWhole;
  return with_images(window, x, y,
                     [&]<typename T, int kPack>(int positions, int packs, unsigned blocks) {
                       launch(context.gpu(), mean_of_images<T, kPack>, {blocks, kLanes * kWarps},
                              positions, packs, x.data<Pack<T, kPack>>(), y.data<T>());
                     });
}

Refusal pool_whole_backward_gpu(Context& context, const PoolWindow& window, const Tensor& /*x*/,
                                const Tensor& /*index*/, const Tensor& dy, const Tensor& dx) {
  return with_images(window, dx, dy,
                     [&]<typename T, int kPack>(int positions, int packs, unsigned blocks) {
                       using P = Pack<T, kPack>;
                       launch(context.gpu(), spread_means<T, kPack>, {blocks, kLanes * kWarps},
                              positions, packs, dy.data<P>(), dx.data<P>());
                     });
}

REGISTER_KERNEL(pool_forward_kernels, "whole_images", RunsOn::gpu, 30, pool_whole_forward_gpu);
REGISTER_KERNEL(pool_backward_kernels, "whole_images", RunsOn::gpu, 30, pool_whole_backward_gpu);

}  // namespace
}  // namespace crema
