// Implicit GEMM (implicit_gemm.h) of float32 numbers on tensor cores, which round the operands to
// tf32. Takes any number of channels. Only files of a CUDA build include it.
#pragma once

#include "kernels/conv/conv_call.h"
#include "kernels/conv/implicit_gemm/product.h"

namespace crema {

class Tf32Gemm final : public ConvProduct {
 public:
  // False with the reason for other precisions, windows of one pixel, which libraries multiply as
  // they are, and groups of few outputs.
  static bool supports(const ConvCase& c, std::string& reason);

  Tf32Gemm(Context& context, const ConvCase& c, ConvCall call);
  size_t choice_count() const override { return choices_.size(); }
  std::string choice_name(size_t choice) const override;
  bool takes_sum() const override { return call_ == ConvCall::fprop; }
  bool takes_y_and_db() const override { return false; }

 private:
  // A tile shape, and the number of pieces of split-K.
  struct Choice {
    int shape = 0, pieces = 1;
  };
  int64_t tiles(int shape) const;
  void launch(Context& context, const ProductTensors& tensors, size_t choice) const override;

  ConvCase c_;
  ConvCall call_;
  int64_t rows_, columns_, depth_;  // M, N and K of one group's product
  Tensor taps_;                     // FilterTap of implicit_gemm.cuh
  std::vector<Choice> choices_;
};

}  // namespace crema
