// Implicit GEMM (implicit_gemm.h) of float32 numbers on tensor cores, which round the operands to
// tf32. Takes any number of channels. Only files of a CUDA build include it.
#pragma once

#include "kernels/conv/conv_call.h"
#include "kernels/conv/implicit_gemm/split_product.h"

namespace crema {

class Tf32Gemm final : public SplitProduct {
 public:
  // False with the reason for other precisions, windows of one pixel, which libraries multiply as
  // they are, and groups of few outputs.
  static bool supports(const ConvCase& c, std::string& reason);

  Tf32Gemm(Context& context, const ConvCase& c, ConvCall call);
  bool takes_sum() const override { return call_ == ConvCall::fprop; }
  bool takes_y_and_db() const override { return false; }

 private:
  void launch(Context& context, const ProductTensors& tensors, size_t choice) const override;

  ConvCase c_;
  ConvCall call_;
};

}  // namespace crema
