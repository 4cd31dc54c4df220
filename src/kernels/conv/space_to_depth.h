// Space to depth: blocks of stride x stride pixels become the channels of one pixel. A strided
// convolution of few channels turns into one of stride 1 and many channels, which tensor cores load
// in whole vectors. 16-bit images and weights, channels-last, on a GPU. Only files of a CUDA build
// include it.
#pragma once

#include "kernels/conv/conv.h"

namespace crema {

// Element (r * span + q) * channels + c of pixel (i, j) of the block image is channel c of the
// image's pixel (i * stride[0] - pad[0] + r, j * stride[1] - pad[1] + q), zero outside of the
// image. So the block image includes the convolution's padding, and there is a window at every
// pixel. Where such blocks have too few channels for cuDNN's fast kernels, they are widened to
// several strides and overlap; windows then have that dilation.
struct SpaceToDepthCase {
  int images, height, width;
  int channels;  // in memory
  int outputs;   // of the weights
  int kernel[2], stride[2], pad[2];
  int overlap, span;         // width of a block in strides and in pixels
  int blocks[2];             // extents of the block image
  int taps[2];               // blocks per window: the kernel, padded with zeros
  int block_channels, deep;  // of a block: stride[0] * span * channels, and that in memory

  // False with the reason when the kernels below do not support the case, or it is not profitable.
  static bool supports(const ConvCase& c, std::string& reason);
  explicit SpaceToDepthCase(const ConvCase& c);
  // The convolution on the block image.
  ConvCase inner(const ConvCase& c) const;
};

void space_to_depth(Context& context, const SpaceToDepthCase& c, const Tensor& x,
                    const Tensor& blocks);
void weights_to_depth(Context& context, const SpaceToDepthCase& c, const Tensor& w,
                      const Tensor& blocks);
// dw, float32: from the gradient of the block image's weights.
void weights_gradient_from_depth(Context& context, const SpaceToDepthCase& c, const Tensor& blocks,
                                 const Tensor& dw, bool accumulate);

}  // namespace crema
