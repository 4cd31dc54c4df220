// Base of Convolution and Deconvolution: reads the message, builds the kernel's case, and handles
// several bottoms with one set of weights.
#pragma once

#include <memory>
#include <optional>

#include "kernels/conv/conv.h"
#include "layers/layer.h"
#include "layers/vision/spatial_params.h"

namespace crema {

class ConvolutionBase : public Layer {
 public:
  static constexpr LayerFacts facts = {
      .kind = LayerKind::convolution, .learned = 1, .quantizes = true};

  Arity bottoms() const override { return fuses("Sum") ? Arity{2, 2} : Arity{1, -1}; }
  Arity tops() const override { return {1, fuses("Sum") ? 1 : -1}; }
  bool as_many_tops_as_bottoms() const override { return !fuses("Sum"); }
  LayerTraits traits() const override {
    return {
        .order_rule = order_rule(), .half_rule = half_rule(), .reads = {true, relu_.has_value()}};
  }
  OrderRule order_rule() const;
  HalfRule half_rule() const;
  int64_t padded_channels(DType storage) const override;
  Edge top_edge() const override { return {.relu = relu_ == 0.f}; }
  Edge bottom_edge(int bottom) const override;
  void setup(Context& context, const std::vector<Shape>& bottoms) override;
  bool give_bias(LayerParameter* message) const override;
  Inference infer(const std::vector<Shape>& bottoms) const override;
  Prepared prepare(Context& context, const Preparation& preparation) const override;
  void backward(Context& context, const Backward& pass) const override;
  int64_t multiply_adds(const std::vector<Shape>& bottoms,
                        const std::vector<Shape>& tops) const override;
  // A top that is rounded is rounded before a ReLU or a sum.
  bool is_profitable(const Context&, const std::vector<Shape>&, Precision) const override {
    return !quantization_ || !quantization_->y;
  }
  // The case that its kernel is made for.
  ConvCase case_of(const Preparation& preparation) const;

 protected:
  explicit ConvolutionBase(bool depthwise = false) : depthwise_(depthwise) {}

  // The top's extent along a spatial axis for the bottom's; Error if nothing is left.
  virtual int64_t extent(size_t axis, int64_t bottom) const = 0;
  // True if the layer's forward is the kernel's data gradient.
  virtual bool transposed() const = 0;
  struct State : LayerState {
    std::unique_ptr<LinearKernel> kernel;
    bool fused_relu = false;  // by all readers: see Edge
  };

  // False: not done, as the kernel does not fuse the gradients. db: as below.
  virtual bool backward_both(Context&, const Backward&, size_t, const Tensor&) const {
    return false;
  }
  virtual void backward_bottom(Context& context, const Backward& pass, size_t i) const = 0;
  // db: to be written too, or empty.
  virtual void backward_weights(Context& context, const Backward& pass, size_t i,
                                const Tensor& db) const = 0;

  // The tensor with all axes before the channels flattened into one.
  Tensor view(const Tensor& tensor) const;
  // True if the gradient of top i must be added to a parameter's diff, which has that of an earlier
  // top, step or pass, or zeros.
  static bool accumulates(const Backward& pass, size_t parameter, size_t i);

  const bool depthwise_;  // a group for each channel, whatever the file says
  SpatialParams spatial_;
  int64_t channels_ = 0, outputs_ = 0, groups_ = 1;
  bool bias_ = true;
  bool sum_ = false;           // a sum with a second bottom has been fused: forward only
  std::optional<float> relu_;  // negative slope, if a ReLU has been fused
  std::optional<LinearQuantization> quantization_;

 private:
  Shape with_one_outer(const Shape& shape) const;
};

}  // namespace crema
