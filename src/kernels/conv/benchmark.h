// Benchmarks the calls of a case, in milliseconds, on tensors in GPU memory. Only for
// autotuner_gpu.cpp.
#pragma once

#include <functional>

#include "kernels/conv/conv.h"
#include "kernels/conv/implicit_gemm/implicit_gemm.h"

namespace crema {

class Benchmark {
 public:
  // weights: the format that all candidates use; workspace: the largest that any of them needs, in
  // bytes.
  Benchmark(Context& context, const ConvCase& c, const Format& weights, size_t workspace);
  // Roughly its GPU memory.
  static size_t bytes(const ConvCase& c, size_t workspace);

  double time(const std::function<void()>& work) const;
  double fprop(LinearKernel& kernel) const;  // with the statistics if it computes them
  double dgrad(LinearKernel& kernel) const;
  // with_relu_and_bias: with the ReLU's gradient and db, where the case has a ReLU and a bias.
  double wgrad(LinearKernel& kernel, bool with_relu_and_bias) const;
  double both_gradients(LinearKernel& kernel) const;
  // The separate passes where a kernel does not fuse them: over y, and over dy.
  double dropout_alone() const;
  double statistics_alone() const;
  double relu_and_bias_alone() const;

  // For ImplicitGemm.
  ImplicitGemmTensors implicit_gemm_fprop() const;
  ImplicitGemmTensors implicit_gemm_dgrad() const;
  ImplicitGemmTensors implicit_gemm_wgrad() const;

 private:
  Tensor bias() const { return c_.bias ? b_ : Tensor(); }
  const void* sign() const { return c_.needs_relu_gradient() ? y_.raw() : nullptr; }

  Context& context_;
  ConvCase c_;
  Tensor x_, w_, b_, y_, dy_, dw_, db_, sums_, workspace_;
};

}  // namespace crema
