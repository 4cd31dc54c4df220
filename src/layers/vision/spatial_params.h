// The geometry that ConvolutionParameter gives: one number a spatial axis, however the file writes
// it.
#pragma once

#include <vector>

#include "tensor/shape.h"

namespace crema {

class ConvolutionParameter;

struct SpatialParams {
  int axis = 1;  // of the channels; the axes behind it are spatial, those before it are images
  std::vector<int64_t> kernel, stride, pad, dilation;
};

// kernel_size, stride, pad and dilation once or once for each spatial axis of `bottom`, or the _h
// and _w fields with two of them. Error for anything else.
SpatialParams spatial_params(const ConvolutionParameter& p, const Shape& bottom);

}  // namespace crema
