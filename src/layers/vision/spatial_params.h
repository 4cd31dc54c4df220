// The geometry in a ConvolutionParameter: one value per spatial axis, whichever fields the file
// uses.
#pragma once

#include <vector>

#include "tensor/shape.h"

namespace crema {

class ConvolutionParameter;

struct SpatialParams {
  int axis = 1;  // axis of the channels; later axes are spatial, earlier ones are batch axes
  std::vector<int64_t> kernel, stride, pad, dilation;
};

// kernel_size, stride, pad and dilation given once or once per spatial axis of `bottom`, or the _h
// and _w fields if there are two axes. Error otherwise.
SpatialParams spatial_params(const ConvolutionParameter& p, const Shape& bottom);

}  // namespace crema
