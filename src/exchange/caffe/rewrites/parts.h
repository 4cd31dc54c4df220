// Steps that several rewrites take. Each adds layers and returns the last one's value.
#pragma once

#include "exchange/caffe/layer_rewrite.h"

namespace crema {

// (shift + scale * x) ^ power; x itself if that changes nothing.
int power_of(LayerRewrite& layer, int x, double scale, double shift, double power = 1);
void write_power(LayerRewrite& layer, int x, double scale, double shift, double power = 1);
int product_of(LayerRewrite& layer, const std::vector<int>& factors);
void write_product(LayerRewrite& layer, const std::vector<int>& factors);
int sum_of(LayerRewrite& layer, const std::vector<int>& terms, const std::vector<float>& coeff);
void write_sum(LayerRewrite& layer, const std::vector<int>& terms, const std::vector<float>& coeff);
int reshaped(LayerRewrite& layer, int x, const std::vector<int64_t>& extents);
void write_reshaped(LayerRewrite& layer, int x, const Shape& shape);
// Values from `first` to `end` along an axis.
int part_of(LayerRewrite& layer, int x, int axis, int64_t first, int64_t end);
void write_part(LayerRewrite& layer, int x, int axis, int64_t first, int64_t end);

// A 1x1 convolution, or for (N, C) an inner product, without bias; weights: (outputs, inputs).
int mixed(LayerRewrite& layer, int x, int64_t outputs, std::vector<float> weights);

// Fills for layers with a convolution_param.
FillCaffeLayer convolution(int64_t outputs, const std::vector<int64_t>& kernel,
                           const std::vector<int64_t>& stride, int64_t group);

}  // namespace crema
