// What BatchNorm and BN share: all but their parameters. A type may end in "+ReLU" or "+Sum+ReLU",
// which the planner makes; then the message has relu_param, and the sum is with a second bottom.
#pragma once

#include "kernels/norm/batch_norm.h"
#include "layers/layer.h"

namespace crema {

class BatchNormBase : public Layer {
 public:
  Arity bottoms() const override { return joins("+Sum") ? Arity{2, 2} : Arity{1, 1}; }
  bool in_place() const override { return true; }
  OrderRule order_rule() const override { return OrderRule::any; }
  HalfRule half_rule() const override { return HalfRule::follows; }
  BackwardReads reads() const override;
  Inference infer(const std::vector<Shape>& bottoms) const override;
  Prepared prepare(Context& context, const Preparation& preparation) override;
  void forward(Context& context, const Forward& pass) override;
  bool takes_sums(int bottom) const override {
    return bottom == 0 && settings_.batch_statistics && !takes_parts();
  }
  // Some images have statistics of their own.
  bool takes_parts() const { return images_together_ > 0; }
  bool gives_affine() const override;
  bool recomputes() const override { return true; }
  void recompute(Context& context, const Forward& pass) override;
  void backward(Context& context, const Backward& pass) override;
  // What its kernels are made for, and its parameters for them.
  BatchNormCase case_of(const Shape& x, const Format& format) const;
  BatchNormParameters blobs(const std::vector<Tensor>& parameters) const;
  // Of scale and shift, as far as they learn. further: they have a part already.
  void parameter_gradients(const Backward& pass, bool further, BatchNormGradients& gradients) const;

 protected:
  bool joins(const char* what) const { return type().find(what) != std::string::npos; }
  static int64_t channels_of(const Shape& x) { return x.axes() == 1 ? 1 : x[1]; }
  // 1: factors whose filler the file does not give.
  static const FillerParameter& ones();

  // Set by setup: statistics, eps and what is stored. The rest is filled in for each pass.
  BatchNormCase settings_;
  // With batch statistics: so many images have statistics of their own; 0: all together.
  int64_t images_together_ = 0;
  // Which parameter is what; -1: there is none.
  struct {
    int mean = -1, variance = -1, factor = -1, scale = -1, shift = -1;
  } place_;

 private:
  bool plain() const { return place_.scale < 0 && place_.shift < 0 && !joins("ReLU"); }
  // How many times statistics are taken of a batch.
  int64_t parts(const Shape& x) const;
  // Forward, or its top once more: calls kernel(case, parameters, x, added, y, saved) for each
  // part.
  template <typename Kernel>
  void run(const Forward& pass, const Kernel& kernel) const;
};

}  // namespace crema
