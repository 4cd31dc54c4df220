// The tensors of a case in a GPU's memory, and the milliseconds that calls take on them. Only for
// autotuner_gpu.cpp.
#pragma once

#include <functional>

#include "kernels/conv/conv.h"
#include "kernels/conv/implicit_gemm/implicit_gemm.h"

namespace crema {

// Backward takes the gradient through the ReLU.
inline bool masks(const ConvCase& c) { return c.relu && !c.relu_taken; }

class Trial {
 public:
  // weights: the format that all who are tried have; workspace: the most bytes that one needs.
  Trial(Context& context, const ConvCase& c, const Format& weights, size_t workspace);
  // That it takes, roughly.
  static size_t bytes(const ConvCase& c, size_t workspace);

  double time(const std::function<void()>& work) const;
  double forward(WeightedSum& sum) const;  // with the sums of channels where it gives them
  double data(WeightedSum& sum) const;
  double weights(WeightedSum& sum, bool masked) const;  // masked: with the ReLU and the bias
  double both(WeightedSum& sum) const;
  // What follows where it is not taken along: a dropout, sums of channels (one pass over y), ReLU
  // and bias of a gradient.
  double dropping() const;
  double summing() const;
  double separate() const;

  // For our own product.
  GatherTensors gather_forward() const;
  GatherTensors gather_data() const;
  GatherTensors gather_weights() const;

 private:
  Tensor bias() const { return c_.bias ? b_ : Tensor(); }
  const void* sign() const { return masks(c_) ? y_.raw() : nullptr; }

  Context& context_;
  ConvCase c_;
  Tensor x_, w_, b_, y_, dy_, dw_, db_, sums_, workspace_;
};

}  // namespace crema
