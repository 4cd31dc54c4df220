// Base of BatchNorm and BN: everything but their parameters. A type may end in "+ReLU" or
// "+Sum+ReLU", made by the planner; the message then has relu_param, and the sum is with a second
// bottom.
#pragma once

#include "kernels/norm/batch_norm.h"
#include "layers/layer.h"

namespace crema {

class BatchNormBase : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::norm,
                                       .along_channels = true,
                                       .keeps_channels = true,
                                       .keeps_zero = true,
                                       .centres = true};

  Arity bottoms() const override { return fuses("Sum") ? Arity{2, 2} : Arity{1, 1}; }
  LayerTraits traits() const override {
    return {.in_place = true,
            .order_rule = OrderRule::any_in_32_bits,
            .half_rule = HalfRule::follows,
            .reads = reads(),
            .batch_statistics = settings_.batch_statistics,
            .changes_parameters = settings_.batch_statistics && position_.mean >= 0,
            .recomputes = true,
            .asks_ranks = settings_.over_ranks};
  }
  BackwardReads reads() const;
  Inference infer(const std::vector<Shape>& bottoms) const override;
  Prepared prepare(Context& context, const Preparation& preparation) const override;
  void forward(Context& context, const Forward& pass) const override;
  Edge bottom_edge(int bottom) const override {
    return {.statistics = bottom == 0 && settings_.batch_statistics && of_own_batch()};
  }
  Edge top_edge() const override;
  std::optional<ChannelMap> channel_map() const override;
  // Statistics are those of all images that this rank has, no more and no less: other kernels can
  // compute them, too.
  bool of_own_batch() const { return images_together_ == 0 && !settings_.over_ranks; }
  void recompute(Context& context, const Forward& pass) const override;
  void backward(Context& context, const Backward& pass) const override;
  // The kernel's case, and the parameters in its form.
  BatchNormCase case_of(const Shape& x, const Format& format) const;
  BatchNormParameters blobs(const std::vector<Tensor>& parameters) const;
  // Scale and shift, if learned. further: adds to the existing values.
  void parameter_gradients(const Backward& pass, bool further, BatchNormGradients& gradients) const;

 protected:
  static int64_t channels_of(const Shape& x) { return x.axes() == 1 ? 1 : x[1]; }
  // To be called by setup() if the file says sync_bn.
  void synchronize(const Context& context);
  // 1: initial scale factors without a filler in the file.
  static const FillerParameter& ones();

  // Set by setup: statistics, eps and storage. The rest is filled in for each pass.
  BatchNormCase settings_;
  // With batch statistics: images per group with its own statistics; 0: the whole batch.
  int64_t images_together_ = 0;
  // Indices of the parameters; -1: absent.
  struct {
    int mean = -1, variance = -1, factor = -1, scale = -1, shift = -1;
  } position_;

 private:
  bool plain() const { return position_.scale < 0 && position_.shift < 0 && !fuses("ReLU"); }
  // Number of groups of images with their own statistics.
  int64_t parts(const Shape& x) const;
  // Forward, or recomputing its top: calls kernel(case, parameters, x, added, y, saved) for each
  // part.
  template <typename Kernel>
  void run(const Forward& pass, const Kernel& kernel) const;
};

}  // namespace crema
