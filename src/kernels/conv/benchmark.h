// Benchmarks the calls of a case, in milliseconds, on tensors in GPU memory. Only files of a CUDA
// build include it.
#pragma once

#include <functional>

#include "kernels/conv/conv.h"

namespace crema {

class Benchmark {
 public:
  // weights: the format that all candidates use; workspace: the largest that any of them needs, in
  // bytes.
  Benchmark(Context& context, const ConvCase& c, const Format& weights, size_t workspace);
  // Whether roughly that much GPU memory is free.
  static bool fits(Context& context, const ConvCase& c, size_t workspace);

  // best: the shortest time so far; a kernel that takes clearly longer runs twice only.
  double time(const std::function<void()>& work, double best = 1e30) const;
  // With what the kernel fuses: the statistics, the sum or the dropout; the gradient of the ReLU,
  // and db.
  double fprop(LinearKernel& kernel, double best = 1e30) const;
  double dgrad(LinearKernel& kernel, double best = 1e30) const;
  double wgrad(LinearKernel& kernel, double best = 1e30) const;
  double both_gradients(LinearKernel& kernel, double best = 1e30) const;
  // The separate passes where a kernel does not fuse them: over y, and over dy.
  double dropout_alone() const;
  double statistics_alone() const;
  double relu_and_bias_alone() const;

 private:
  Tensor bias() const { return c_.bias ? b_ : Tensor(); }
  OutputGradient gradient_for(const LinearKernel& kernel) const;

  Context& context_;
  ConvCase c_;
  Tensor x_, w_, b_, y_, dy_, dw_, db_, sums_, workspace_;
};

}  // namespace crema
