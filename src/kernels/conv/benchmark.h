// Benchmarks the calls of a case, in milliseconds, on tensors in GPU memory. Only for
// autotuner_gpu.cpp.
#pragma once

#include <functional>

#include "kernels/conv/conv.h"
#include "kernels/conv/implicit_gemm/implicit_gemm.h"

namespace crema {

// Backward applies the gradient of the ReLU.
inline bool masks(const ConvCase& c) { return c.relu && !c.relu_taken; }

class Benchmark {
 public:
  // weights: the format that all candidates use; workspace: the largest that any of them needs, in
  // bytes.
  Benchmark(Context& context, const ConvCase& c, const Format& weights, size_t workspace);
  // Roughly its GPU memory.
  static size_t bytes(const ConvCase& c, size_t workspace);

  double time(const std::function<void()>& work) const;
  double forward(LinearKernel& sum) const;  // with the per-channel sums if it gives them
  double data(LinearKernel& sum) const;
  double weights(LinearKernel& sum, bool masked) const;  // masked: with the ReLU and the bias
  double both(LinearKernel& sum) const;
  // The separate kernels where nothing is fused: a dropout; per-channel sums (one pass over y);
  // ReLU and bias of a gradient.
  double dropping() const;
  double summing() const;
  double separate() const;

  // For ImplicitGemm.
  ImplicitGemmTensors implicit_gemm_fprop() const;
  ImplicitGemmTensors implicit_gemm_dgrad() const;
  ImplicitGemmTensors implicit_gemm_wgrad() const;

 private:
  Tensor bias() const { return c_.bias ? b_ : Tensor(); }
  const void* sign() const { return masks(c_) ? y_.raw() : nullptr; }

  Context& context_;
  ConvCase c_;
  Tensor x_, w_, b_, y_, dy_, dw_, db_, sums_, workspace_;
};

}  // namespace crema
