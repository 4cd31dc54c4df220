// Reduces the weight gradients of depthwise convolutions over blocks. Each block adds its sums to
// dw; or, if results must be repeatable, writes them to memory: the last block of a group adds the
// group's, and the last of these blocks adds the groups'. The order of additions depends on sizes
// only.
#pragma once

#include <cstdint>

#include "kernels/conv/depthwise/depthwise.cuh"
#include "kernels/core/atomic_add.cuh"
#include "kernels/core/warp.cuh"

namespace crema {

// Blocks per group; 32 and 64 measured slower.
constexpr int kDepthwisePartGroup = 16;

// Channels of a partial result, padded so that sums can be moved four at a time.
CREMA_HD constexpr int depthwise_part_channels(int channels) { return (channels + 7) / 8 * 8; }

// Floats for the partial results of `blocks` blocks that share their channels.
inline int64_t depthwise_part_floats(int64_t blocks, int taps, int channels) {
  const int64_t groups = (blocks + kDepthwisePartGroup - 1) / kDepthwisePartGroup;
  return blocks > 1 ? (blocks + groups) * (taps + 1) * depthwise_part_channels(channels) : 0;
}

// The destination of blocks' sums. Sums of some channels are stored as in dw, each channel's taps
// contiguous, followed by the bias's as in db. The number of channels is even.
struct PartSums {
  float *parts, *dw, *db;  // db: may be null
  unsigned* counters;
  bool adds;  // to dw and db, in any order
  bool accumulate_w, accumulate_b;
  int taps, channels, of_block;  // of_block: channels of a block, a multiple of eight

#ifdef __CUDACC__
  // Floats of a block's sums.
  __device__ int size() const { return (taps + 1) * of_block; }
  // Adds up `sets` contiguous sets of sums in shared memory, also over all blocks of these
  // channels. All threads of a block call it.
  __device__ void add(const float* shared, int sets) const {
    const int block = static_cast<int>(blockIdx.y), count = static_cast<int>(gridDim.y);
    const auto own = [&](const Quad& quad) {
      float4 sum{0, 0, 0, 0};
#pragma unroll 4
      for (int set = 0; set < sets; ++set)
        add_quad(sum, *reinterpret_cast<const float4*>(shared + set * size() + quad.in_block));
      return sum;
    };
    if (adds) return over_quads([&](const Quad& quad) { add_to(quad, own(quad)); });
    if (count == 1) return finish(own);
    leave(block, own);
    const int group = block / kDepthwisePartGroup;
    const int groups = (count + kDepthwisePartGroup - 1) / kDepthwisePartGroup;
    const int of_group = min(kDepthwisePartGroup, count - group * kDepthwisePartGroup);
    unsigned* const counter = counters + blockIdx.x * (groups + 1);
    if (!last_of(counter + group, of_group)) return;
    const auto of_blocks = [&](const Quad& quad) {
      return total(group * kDepthwisePartGroup, of_group, quad);
    };
    if (groups == 1) return finish(of_blocks);
    leave(count + group, of_blocks);
    if (!last_of(counter + groups, groups)) return;
    finish([&](const Quad& quad) { return total(count, groups, quad); });
  }

 private:
  // Four adjacent sums, or the last two of the channels.
  struct Quad {
    int in_block, in_part;
    float* to;  // in dw or db
    bool weights, whole;
  };
  // Calls body(quad) once for each quad of the block's sums.
  template <typename Body>
  __device__ void over_quads(const Body& body) const {
    const int first = static_cast<int>(blockIdx.x) * of_block;
    const int own = min(of_block, channels - first), own_weights = own * taps;
    const int quads = (own_weights + 3) / 4, all = quads + (db ? (own + 3) / 4 : 0);
    for (int i = static_cast<int>(threadIdx.x); i < all; i += static_cast<int>(blockDim.x)) {
      const bool weights = i < quads;
      const int at = (weights ? i : i - quads) * 4, to = (weights ? first * taps : first) + at;
      body(Quad{weights ? at : of_block * taps + at,
                weights ? to : depthwise_part_channels(channels) * taps + to,
                (weights ? dw : db) + to, weights, at + 4 <= (weights ? own_weights : own)});
    }
  }
  __device__ static void add_quad(float4& sum, const float4& more) {
    sum.x += more.x, sum.y += more.y, sum.z += more.z, sum.w += more.w;
  }
  __device__ static void add_to(const Quad& quad, const float4& sum) {
    quad.whole ? atomic_add_quad(quad.to, sum) : atomic_add_pair(quad.to, {sum.x, sum.y});
  }
  __device__ float4* at(int part, const Quad& quad) const {
    const int64_t size = static_cast<int64_t>(taps + 1) * depthwise_part_channels(channels);
    return reinterpret_cast<float4*>(parts + part * size + quad.in_part);
  }
  template <typename Value>
  __device__ void leave(int part, const Value& value) const {
    over_quads([&](const Quad& quad) { *at(part, quad) = value(quad); });
  }
  __device__ float4 total(int first, int count, const Quad& quad) const {
    float4 sum{0, 0, 0, 0};
    float4 values[kDepthwisePartGroup];
#pragma unroll
    for (int i = 0; i < kDepthwisePartGroup; ++i)
      values[i] = i < count ? __ldcg(at(first + i, quad)) : float4{0, 0, 0, 0};
#pragma unroll
    for (const float4& value : values) add_quad(sum, value);
    for (int part = first + kDepthwisePartGroup; part < first + count; ++part)
      add_quad(sum, __ldcg(at(part, quad)));
    return sum;
  }
  template <typename Value>
  __device__ void finish(const Value& value) const {
    over_quads([&](const Quad& quad) {
      float4 sum = value(quad);
      const bool more = quad.weights ? accumulate_w : accumulate_b;
      if (quad.whole) {
        auto* const to = reinterpret_cast<float4*>(quad.to);
        if (more) add_quad(sum, *to);
        *to = sum;
      } else {
        quad.to[0] = more ? quad.to[0] + sum.x : sum.x;
        quad.to[1] = more ? quad.to[1] + sum.y : sum.y;
      }
    });
  }
#endif
};

inline PartSums part_sums(const Gpu& gpu, const DepthwiseGradients& g, int taps, int channels,
                          int of_block) {
  return {g.parts,        g.dw,           g.db, gpu.counters, g.adds,
          g.accumulate_w, g.accumulate_b, taps, channels,     of_block};
}

}  // namespace crema
