// The fields of a layer as a dialect's reader should find them.
#pragma once

#include "exchange/caffe/caffe_graph.h"
#include "exchange/caffe/dialect.h"

namespace crema {

// Leaves out what only training reads (fillers, learning rates, gradients, losses), choices of
// implementations, fields without an effect, and defaults that the dialect does not know. Negative
// axes become positive ones.
void clean_fields(const Dialect& dialect, const Shape& bottom, CaffeLayer* layer);

// Writes defaults that the dialect's reader does not know.
void add_defaults(const Dialect& dialect, LayerParameter* layer);

// How a convolution or pooling is given, in the fields that every reader has: one number for all
// axes, or pairs of _h and _w, or with other numbers of axes a list.
void set_kernel(const std::vector<int64_t>& kernel, const std::vector<int64_t>& stride,
                const std::vector<int64_t>& pad, const std::vector<int64_t>& dilation,
                ConvolutionParameter* p);

}  // namespace crema
