// Images and weights as bytes, in the form that Int8Gemm reads. Only files of a CUDA build include it.
#pragma once

#include "kernels/conv/conv.h"

namespace crema {

// x of the case, of its type and order, or as the integers that it was rounded to (u8, channels-last), as bytes
// (N, points, groups, channels) at `to`.
// channels: of a group, 4, 8 or a multiple of 16; those past the case's are zeros.
void round_to_bytes(Context& context, const ConvCase& c, int64_t channels, const Tensor& x,
                    const Tensor& to);

// Row-major weights of the case, float32, as bytes (O, taps, channels).
void round_weights_to_bytes(Context& context, const ConvCase& c, int64_t channels, const Tensor& w,
                            const Tensor& to);

}  // namespace crema
