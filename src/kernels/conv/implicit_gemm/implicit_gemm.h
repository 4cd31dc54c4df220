// Implicit GEMM: products (product.h) whose operand `a` or `b` is gathered from an image as it is
// loaded. With windows of a single pixel, as in fully connected layers, all operands are plain
// matrices, which have their own kernels (small_gemm_gpu.cu). Only files of a CUDA build include it.
#pragma once

#include "kernels/conv/conv_call.h"
#include "kernels/conv/implicit_gemm/product.h"

namespace crema {

// Whether each window is one pixel, in y's order.
bool is_matrix_product(const ConvCase& c);

class ImplicitGemm final : public ConvProduct {
 public:
  // For a case without pooling.
  ImplicitGemm(Context& context, const ConvCase& c, ConvCall call);
  size_t choice_count() const override { return choices_.size(); }
  std::string choice_name(size_t choice) const override;
  bool takes_sum() const override { return call_ == ConvCall::fprop; }

 private:
  // A tile shape, the number of pieces of split-K, and how many of them a cluster of blocks
  // reduces.
  struct Choice {
    int shape = 0, pieces = 1, cluster = 1;
  };
  void add_choices();
  size_t untimed() const;
  int64_t blocks_of(const Choice& choice) const;
  void launch(Context& context, const ProductTensors& tensors, size_t choice) const override;

  ConvCase c_;
  ConvCall call_;
  bool is_matrix_product_, clusters_ = false;
  int processors_ = 0, shared_limit_ = 0;  // shared_limit_: bytes of shared memory for a block
  int64_t rows_, columns_, depth_;         // of the product (M, N, K), for one group
  Tensor taps_;  // FilterTap of implicit_gemm.cuh; empty for plain matrices
  std::vector<Choice> choices_;
};

}  // namespace crema
