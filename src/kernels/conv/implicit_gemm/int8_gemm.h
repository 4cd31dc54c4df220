// Implicit GEMM (implicit_gemm.h) of bytes on tensor cores, forward only: the sums are exact in int32,
// y[p,o] = relu(b[o] + factor[o] * sum over k of x[p,k] w[o,k]). Only files of a CUDA build include it.
#pragma once

#include <vector>

#include "kernels/conv/implicit_gemm/split_product.h"

namespace crema {

// What a product of bytes needs beyond its case.
struct Int8Operands {
  bool has_sign = true;        // x is int8, else uint8; w is int8
  std::vector<float> factors;  // one for each output
};

class Int8Gemm final : public SplitProduct {
 public:
  // False with the reason for 3 spatial axes, groups of few channels, and sums that may exceed int32.
  static bool supports(const ConvCase& c, std::string& reason);
  static int64_t padded_channels(const ConvCase& c);

  // run() is given x as bytes (N, points, groups, channels), w as bytes (O, taps, channels), and b,
  // `added` and y in the case's type and order. out_bytes: (N, points, O), for a channels-last case.
  Int8Gemm(Context& context, const ConvCase& c, const Int8Operands& operands);
  bool takes_sum() const override { return true; }

 private:
  void launch(Context& context, const ProductTensors& tensors, size_t choice) const override;

  ConvCase c_;
  bool has_sign_;
  Tensor factors_;
};

}  // namespace crema
