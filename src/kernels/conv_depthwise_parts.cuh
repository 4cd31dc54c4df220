// The sums of the weights' gradients of depthwise convolutions over blocks: each block leaves its
// own, the last of a few blocks adds theirs, and the last of these those sums. The order of the
// additions depends on sizes only.
#pragma once

#include <cstdint>

#include "kernels/mma.cuh"
#include "kernels/warp.cuh"

namespace crema {

constexpr int kDepthwisePartGroup = 16;  // blocks whose parts one adds

// Floats for the parts of `blocks` blocks that share their channels.
inline int64_t depthwise_part_floats(int64_t blocks, int taps, int channels) {
  const int64_t groups = (blocks + kDepthwisePartGroup - 1) / kDepthwisePartGroup;
  return blocks > 1 ? (blocks + groups) * (taps + 1) * channels : 0;
}

// Where the sums of blocks go, [part][tap][channel] with the bias as the last tap. A lane is a pair
// of the block's channels.
struct PartSums {
  float *parts, *dw, *db;  // db: or null
  unsigned* counters;
  bool accumulate_w, accumulate_b;
  int taps, channels, lanes;
  FastDivide by_lanes;

#ifdef __CUDACC__
  // Adds value(tap, lane) of all blocks of these channels. All threads of a block call it.
  template <typename Value>
  __device__ void add(const Value& value) const {
    const int block = static_cast<int>(blockIdx.y), count = static_cast<int>(gridDim.y);
    if (count == 1) return finish(value);
    leave(block, value);
    const int group = block / kDepthwisePartGroup;
    const int groups = (count + kDepthwisePartGroup - 1) / kDepthwisePartGroup;
    const int of_group = min(kDepthwisePartGroup, count - group * kDepthwisePartGroup);
    unsigned* const own = counters + blockIdx.x * (groups + 1);
    if (!last_of(own + group, of_group)) return;
    const auto of_blocks = [&](int tap, int lane) {
      return total(group * kDepthwisePartGroup, of_group, tap, lane);
    };
    if (groups == 1) return finish(of_blocks);
    leave(count + group, of_blocks);
    if (!last_of(own + groups, groups)) return;
    finish([&](int tap, int lane) { return total(count, groups, tap, lane); });
  }

 private:
  __device__ int channel_of(int lane) const {
    return (static_cast<int>(blockIdx.x) * lanes + lane) * 2;
  }
  // Calls body(tap, lane, channel) for the block's channels, each once.
  template <typename Body>
  __device__ void over_sums(const Body& body) const {
    for (int i = static_cast<int>(threadIdx.x); i < (taps + (db ? 1 : 0)) * lanes;
         i += static_cast<int>(blockDim.x)) {
      int lane;
      const int tap = by_lanes.split(i, lane);
      if (channel_of(lane) < channels) body(tap, lane, channel_of(lane));
    }
  }
  __device__ float2* at(int part, int tap, int channel) const {
    return reinterpret_cast<float2*>(
        parts + (static_cast<int64_t>(part) * (taps + 1) + tap) * channels + channel);
  }
  template <typename Value>
  __device__ void leave(int part, const Value& value) const {
    over_sums([&](int tap, int lane, int channel) { *at(part, tap, channel) = value(tap, lane); });
  }
  __device__ static void add_pair(float2& sum, float2 value) { sum.x += value.x, sum.y += value.y; }
  __device__ float2 total(int first, int count, int tap, int lane) const {
    const int channel = channel_of(lane);
    float2 sum{0, 0};
    float2 values[kDepthwisePartGroup];
#pragma unroll
    for (int i = 0; i < kDepthwisePartGroup; ++i)
      values[i] = i < count ? __ldcg(at(first + i, tap, channel)) : float2{0, 0};
#pragma unroll
    for (const float2& value : values) add_pair(sum, value);
    for (int part = first + kDepthwisePartGroup; part < first + count; ++part)
      add_pair(sum, __ldcg(at(part, tap, channel)));
    return sum;
  }
  template <typename Value>
  __device__ void finish(const Value& value) const {
    over_sums([&](int tap, int lane, int channel) {
      const float2 sum = value(tap, lane);
      const bool weight = tap < taps, more = weight ? accumulate_w : accumulate_b;
      float* const to = weight ? dw + static_cast<int64_t>(channel) * taps + tap : db + channel;
      float* const next = to + (weight ? taps : 1);
      *to = more ? *to + sum.x : sum.x;
      *next = more ? *next + sum.y : sum.y;
    });
  }
#endif
};

}  // namespace crema
