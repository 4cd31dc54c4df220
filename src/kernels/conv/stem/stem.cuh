// What stem_3x3 and stem_7x7s2, convolutions of a net's first layer, have in common: channels-last
// images in 16 bits, no gradient of the data, and a weight gradient of which each thread block
// leaves its sums in the workspace. Only for .cu files of a CUDA build.
#pragma once

#include "device/launch.h"
#include "kernels/conv/implicit_gemm/product.h"

namespace crema {

// Adds up `count` parts of `all` elements each, a multiple of 32, in a fixed order and calls
// store(element, sum). A block of eight warps has 32 elements; each warp takes every eighth part.
template <typename Store>
__global__ void __launch_bounds__(256)
    add_parts(int64_t all, const float* parts, int count, Store store) {
  __shared__ float sums[8][32];
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int element = static_cast<int>(blockIdx.x) * 32 + lane;
  float sum = 0;
#pragma unroll 4
  for (int part = warp; part < count; part += 8) sum += parts[part * all + element];
  sums[warp][lane] = sum;
  __syncthreads();
  if (warp > 0) return;
  for (int other = 1; other < 8; ++other) sum += sums[other][lane];
  store(element, sum);
}

class StemConv : public LinearKernel {
 public:
  Format weights_format() const override { return {Order::channels_last, nullptr, c_.x_channels}; }
  size_t workspace() const override {
    if (!c_.backward_weights) return 0;
    return aligned(size_t{wgrad_blocks_.x} * static_cast<size_t>(sums_) * sizeof(float));
  }
  void backward_data(Context&, const OutputGradient&, const Tensor&, const Tensor&,
                     const Tensor&) override {
    fail("a convolution on an image's rows has no gradient of the data");
  }

 protected:
  // depth: sums of the weight gradient for each output.
  StemConv(const ConvCase& c, int depth) : c_(c), sums_(static_cast<int>(c.w[0]) * depth) {}

  template <typename Store>
  void add_blocks(Context& context, const Tensor& workspace, const Store& store) const {
    launch(context.gpu(), add_parts<Store>, {static_cast<unsigned>(sums_ / 32), 256},
           int64_t{sums_}, workspace.data<float>(), static_cast<int>(wgrad_blocks_.x), store);
  }

  ConvCase c_;
  int sums_;
  dim3 fprop_blocks_, wgrad_blocks_;
};

// What both need; false with the reason.
inline bool supports_stem(const Context& context, const ConvCase& c, std::string& reason) {
  if (!is_half(c.dtype) || c.order != Order::channels_last || c.x.axes() != 4) {
    reason = "for channels-last images of two axes in 16 bits only";
  } else if (c.backward_data || c.groups != 1) {
    reason = "no gradient of the data, no groups";
  } else if (c.relu.on && c.relu.slope != 0) {
    reason = "a ReLU with a slope";
  } else if (c.x.count() == 0 || c.y.count() == 0) {
    reason = "nothing to compute";
  } else {
    return has_async_mma(context, reason);
  }
  return false;
}

}  // namespace crema
