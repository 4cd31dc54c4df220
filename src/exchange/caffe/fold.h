// Folding: BatchNorm, Scale and Bias become part of the convolution or inner product before them.
#pragma once

#include "exchange/caffe/caffe_graph.h"

namespace crema {

void fold_into_products(CaffeGraph* graph);

}  // namespace crema
