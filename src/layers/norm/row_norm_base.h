// Base of LayerNorm and GroupNorm: everything but which rows are normalized.
#pragma once

#include "kernels/norm/row_norm.h"
#include "layers/layer.h"
#include "proto/filler.pb.h"

namespace crema {

class RowNormBase : public Layer {
 public:
  static constexpr LayerFacts facts = {
      .kind = LayerKind::norm, .keeps_channels = true, .centres = true, .learned = 2};

  LayerTraits traits() const override {
    return {.in_place = false, .half_rule = HalfRule::follows, .reads = {true, false}};
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape rows{view(bottoms[0], {}).rows};
    return {{bottoms[0]}, {{rows, {}}, {rows, {}}}};  // saved: mean and inverse standard deviation
  }

  Prepared prepare(Context& context, const Preparation& preparation) const override {
    Prepared prepared;
    const Format format{preparation.bottom_orders[0], nullptr};
    prepared.workspace = row_norm_workspace(context, view(preparation.bottoms[0], format));
    return prepared;
  }

  void forward(Context& context, const Forward& pass) const override {
    const Tensor& x = pass.bottom[0];
    row_norm_forward(context, case_of(x), learned(pass.parameters), x, pass.top[0],
                     saved_of(pass.saved));
  }

  void backward(Context& context, const Backward& pass) const override {
    const Tensor& x = pass.bottom[0];
    RowNormGradients gradients;
    gradients.dx = pass.bottom_diff[0];
    if (!parameters().empty()) {
      gradients.d_scale = pass.parameter_diff[0];
      gradients.d_shift = pass.parameter_diff[1];
      gradients.accumulate_scale = pass.accumulate[0];
      gradients.accumulate_shift = pass.accumulate[1];
    }
    row_norm_backward(context, case_of(x), learned(pass.parameters), x, pass.top_diff[0],
                      saved_of(pass.saved), gradients, pass.workspace);
  }

 protected:
  virtual RowNormView view(const Shape& x, const Format& format) const = 0;

  // Message: has eps, scale_bias and two fillers.
  template <typename Message>
  void setup_from(const Message& p, const Shape& learned) {
    eps_ = p.eps();
    if (!p.scale_bias()) return;
    scale_filler_ = p.scale_filler();
    if (!p.has_scale_filler()) scale_filler_.set_value(1);
    add_parameter(learned, scale_filler_);
    add_parameter(learned, p.bias_filler());
  }

 private:
  RowNormCase case_of(const Tensor& x) const {
    RowNormCase c;
    c.view = view(x.shape(), x.format());
    c.eps = eps_;
    return c;
  }
  static RowNormParameters learned(const std::vector<Tensor>& parameters) {
    if (parameters.empty()) return {};
    return {parameters[0], parameters[1]};
  }
  static RowNormSaved saved_of(const std::vector<Tensor>& saved) { return {saved[0], saved[1]}; }

  float eps_ = 0;
  FillerParameter scale_filler_;
};

}  // namespace crema
