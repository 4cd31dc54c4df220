// Batch normalization, ReLU and max pooling of channels-last tensors on the GPU: forward is one
// kernel after the statistics, backward two, for the sums over the selected values and for the
// gradient. Normalization and ReLU preserve or reverse the order of a channel's values, so windows
// are compared on x. Memory-bound: x once forward and twice backward.
#include "device/launch.h"
#include "kernels/norm/batch_norm_params.cuh"
#include "kernels/norm/batch_norm_pool.h"
#include "kernels/pool/pool_walk.cuh"

namespace crema {
namespace {

using namespace batch_norm;
using namespace pooling;

template <typename T, int kWindow, int kStep>
__global__ void __launch_bounds__(256, 3)
    apply_max(Geometry32 g, Tiles tiles, const Words* __restrict__ x, WidePack<T>* __restrict__ y,
              WidePack<T>* __restrict__ kept, Cells<T>* __restrict__ index, ChannelParams n) {
  constexpr int kLanes = kPackCount<T> / 4, kBits = 32 / kLanes;  // per word
  const Position o(g, tiles, kWalkRows);
  if (!o.inside) return;
  ChannelParams::Line norm[kPackCount<T>];
  Words flipped = {};  // sign bits of channels with a negative factor, whose order is reversed
#pragma unroll
  for (int k = 0; k < kPackCount<T>; ++k) {
    const int64_t c = static_cast<int64_t>(o.pack) * kPackCount<T> + k;
    norm[k] = n.line(c, n.mean[c], n.inverse[c]);
    if (norm[k].factor < 0) flipped.v[k / kLanes] |= 1u << (k % kLanes * kBits + kBits - 1);
  }
  const auto flip_sign = [&](Words words) {
#pragma unroll
    for (int i = 0; i < 4; ++i) words.v[i] ^= flipped.v[i];
    return words;
  };
  walk_windows<T, kWindow, kStep>(
      g, o, [&](int at) { return flip_sign(x[at]); },
      [&](int to, const Words& largest, uint32_t(&cells)[4]) {
        const Words words = flip_sign(largest);
        const auto& best = *reinterpret_cast<const WidePack<T>*>(&words);
        WidePack<T> out;
#pragma unroll
        for (int k = 0; k < kPackCount<T>; ++k) {
          const float value = static_cast<float>(best.v[k]) * norm[k].factor + norm[k].constant;
          out.v[k] = value <= 0 ? 0 : value;  // NaN stays NaN
          if (!(value > 0))
            cells[k / kLanes] |= (kLanes == 1 ? ~0u : 0xffffu) << (k % kLanes * kBits);
        }
        y[to] = out;
        if (kept) kept[to] = best;
        if (index) index[to] = Lanes<T>::bytes(cells);
      });
}

template <typename T, int kWindow, int kStep>
__global__ void __launch_bounds__(256, 2)
    apply_max_gradient(Geometry32 g, Tiles tiles, const Cells<T>* index, const WidePack<T>* dy,
                       const WidePack<T>* x, WidePack<T>* dx, ChannelParams n) {
  const Position tile(g, tiles, kWalkRows);
  if (!tile.inside) return;
  ChannelParams::GradientLine norm[kPackCount<T>];
#pragma unroll
  for (int k = 0; k < kPackCount<T>; ++k)
    norm[k] = n.gradient_line(static_cast<int64_t>(tile.pack) * kPackCount<T> + k);
  walk_gradients<T, kWindow, kStep>(
      g, tile, index, dy, [&](int at) { return x[at]; },
      [&](int at, const WidePack<T>& given, const float(&sums)[kPackCount<T>]) {
        WidePack<T> out;
#pragma unroll
        for (int k = 0; k < kPackCount<T>; ++k)
          out.v[k] = norm[k].of(sums[k], static_cast<float>(given.v[k]));
        dx[at] = out;
      });
}

// Calls body<T, window, step>(geometry). y: the pooled tensor.
template <typename Body>
void with_kernels(const PoolWindow& window, const Tensor& x, const Tensor& y, const Body& body) {
  on_real(x, [&]<typename T>() {
    if constexpr (!std::is_same_v<T, double>) {
      const Geometry32 g(PoolGeometry(window, x, y), kPackCount<T>);
      with_walk(window,
                [&]<int kWindow, int kStep>() { body.template operator()<T, kWindow, kStep>(g); });
    }
  });
}

Refusal norm_pool_forward_gpu(Context& context, const BatchNormPoolCase& c,
                              const BatchNormParameters& parameters, const Tensor& x,
                              const Tensor& sums, const Tensor& y, const BatchNormPoolSaved& saved,
                              const Tensor& workspace) {
  batch_norm_statistics_gpu(context, c.norm, parameters, x, sums, saved.norm, workspace);
  const ChannelParams n = channel_params(c.norm, parameters, saved.norm, workspace.data<float>());
  with_kernels(c.window, x, y, [&]<typename T, int kWindow, int kStep>(const Geometry32& g) {
    const Launch l(g, g.out, kWalkRows);
    launch(context.gpu(), apply_max<T, kWindow, kStep>, {l.blocks, l.threads}, g, l.tiles,
           x.data<Words>(), y.data<WidePack<T>>(), saved.kept.data<WidePack<T>>(),
           saved.index.data<Cells<T>>(), n);
  });
  return nullptr;
}

Refusal norm_pool_backward_gpu(Context& context, const BatchNormPoolCase& c,
                               const BatchNormParameters& parameters, const Tensor& x,
                               const Tensor& dy, const Tensor& more_dy,
                               const BatchNormPoolSaved& saved, const BatchNormGradients& gradients,
                               const Tensor& workspace) {
  batch_norm_sums_gpu(context, c.norm, parameters, saved.kept, dy, more_dy, saved.norm, gradients,
                      workspace);
  if (!gradients.dx) return nullptr;
  const ChannelParams n = channel_params(c.norm, parameters, saved.norm, workspace.data<float>());
  with_kernels(c.window, x, dy, [&]<typename T, int kWindow, int kStep>(const Geometry32& g) {
    const Launch l = launch_of_gradients(g);
    launch(context.gpu(), apply_max_gradient<T, kWindow, kStep>, {l.blocks, l.threads}, g, l.tiles,
           saved.index.data<Cells<T>>(), dy.data<WidePack<T>>(), x.data<WidePack<T>>(),
           gradients.dx.data<WidePack<T>>(), n);
  });
  return nullptr;
}

REGISTER_KERNEL(batch_norm_pool_forward_kernels, "channels_last", RunsOn::gpu, 0,
                norm_pool_forward_gpu);
REGISTER_KERNEL(batch_norm_pool_backward_kernels, "channels_last", RunsOn::gpu, 0,
                norm_pool_backward_gpu);

}  // namespace
}  // namespace crema
