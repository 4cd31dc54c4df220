// Space to depth: blocks of stride x stride pixels become the channels of one. A strided
// convolution of few channels is then one of stride 1 and many channels, which tensor cores take in
// whole vectors. 16-bit images and weights, channels-last, on a GPU. Only files of a CUDA build
// include it.
#pragma once

#include "kernels/conv/conv.h"

namespace crema {

// Pixel (i, j) of the block image has at (r * span + q) * channels + c what the image has in
// channel c of pixel (i * stride[0] - pad[0] + r, j * stride[1] - pad[1] + q), zero outside of the
// image. So it holds the convolution's padding, and windows lie at every pixel. Where such blocks
// have too few channels for cuDNN's fast kernels, they are as many strides wide as it takes, and
// overlap; windows then have that dilation.
struct BlockCase {
  int images, height, width;
  int channels;  // in memory
  int outputs;   // of the weights
  int kernel[2], stride[2], pad[2];
  int overlap, span;         // strides and pixels in the width of a block
  int blocks[2];             // extents of the block image
  int taps[2];               // blocks under a window: the kernel, filled up with zeros
  int block_channels, deep;  // of a block: stride[0] * span * channels, and that in memory

  // False with the reason when the kernels below do not serve the case, or it has nothing to gain.
  static bool serves(const ConvCase& c, std::string& reason);
  explicit BlockCase(const ConvCase& c);
  // The convolution on the block image.
  ConvCase inner(const ConvCase& c) const;
};

void blocks_of_image(Context& context, const BlockCase& c, const Tensor& x, const Tensor& blocks);
void blocks_of_weights(Context& context, const BlockCase& c, const Tensor& w, const Tensor& blocks);
// dw, float32: out of the gradient of the blocks' weights.
void gradient_of_blocks(Context& context, const BlockCase& c, const Tensor& blocks,
                        const Tensor& dw, bool accumulate);

}  // namespace crema
