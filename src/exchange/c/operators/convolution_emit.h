// What Conv, ConvTranspose and their gradients share.
#pragma once

#include <string>

#include "exchange/c/operators/window_emit.h"

namespace crema {

// The image that a convolution reads, and its channels and filters; those of one group.
struct CConvolution {
  CWindow window;
  int64_t samples, groups, channels, outputs;

  int64_t taps() const { return channels * window.taps(); }
};

// The convolution from whose result a ConvTranspose computes the image.
CConvolution transposed_convolution(const OperatorEmit& op);

// Adds a call that brings weights that training changes, or that are not constants in this order, into
// blocks of four output channels.
CArgument pack_blocks(OperatorEmit& op, const CArgument& weights, const CConvolution& shape);

// Adds the call of conv(). `weights`: in blocks.
void call_conv(OperatorEmit& op, const CConvolution& shape, const CArgument& y, const CArgument& x,
               const CArgument& weights, const CArgument& bias, const std::string& activation);

}  // namespace crema
