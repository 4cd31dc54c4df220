// The kernels of conv_depthwise_strips.cuh as a convolution.
#include "kernels/conv_depthwise.h"
#include "kernels/conv_depthwise_strips.cuh"

namespace crema {
namespace {

class DepthwiseStrips final : public WeightedSum {
 public:
  explicit DepthwiseStrips(const ConvCase& c)
      : c_(c),
        kind_{c.dtype, static_cast<int>(c.w[2]), static_cast<int>(c.stride[0])},
        taps_(kind_.kernel * kind_.kernel),
        sums_(strip_sums_numbers(c)),
        gradients_(kind_.stride == 1 ? strip_gradients_numbers(c) : spread_gradients_numbers(c)) {}

  Format weights_format() const override { return Format::channels_last(); }
  size_t workspace() const override {
    if (!c_.backward_weights) return 0;
    return static_cast<size_t>(gradients_.parts() * (taps_ + 1) * c_.x[1]) * sizeof(float);
  }
  // Of a case without one: then the bias's gradient comes with that of the weights.
  bool takes_relu() const override { return !c_.relu; }
  bool joins_gradients() const override { return true; }

  void forward(Context& context, const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& y,
               const Tensor&) override {
    start_strip_sums(
        context.gpu(), sums_, kind_,
        {x.raw(), w.raw(), b ? b.raw() : nullptr, {c_.relu, c_.relu_slope}, false, y.raw()});
  }

  void backward_data(Context& context, const OutputGradient& g, const Tensor& w, const Tensor& dx,
                     const Tensor&) override {
    if (kind_.stride == 2) {
      start_spread_gradients(context.gpu(), gradients_, kind_,
                             {nullptr, g.dy.raw(), w.raw(), dx.raw(), nullptr, false});
    } else {
      start_strip_sums(context.gpu(), sums_, kind_,
                       {g.dy.raw(), w.raw(), nullptr, {}, true, dx.raw()});
    }
  }

  void backward_weights(Context& context, const Tensor& x, const OutputGradient& g,
                        const Tensor& dw, const Tensor& db, bool accumulate_w, bool accumulate_b,
                        const Tensor& workspace) override {
    backward_both(context, x, g, Tensor(), Tensor(), dw, db, accumulate_w, accumulate_b, workspace);
  }

  // Without w and dx: that of the weights.
  void backward_both(Context& context, const Tensor& x, const OutputGradient& g, const Tensor& w,
                     const Tensor& dx, const Tensor& dw, const Tensor& db, bool accumulate_w,
                     bool accumulate_b, const Tensor& workspace) override {
    float* const parts = workspace.data<float>();
    const auto start = kind_.stride == 1 ? start_strip_gradients : start_spread_gradients;
    start(context.gpu(), gradients_, kind_,
          {x.raw(), g.dy.raw(), w ? w.raw() : nullptr, dx ? dx.raw() : nullptr, parts, bool(db)});
    add_depthwise_parts(context.gpu(), static_cast<int>(c_.x[1]), taps_, gradients_.parts(),
                        {x.raw(), g.dy.raw(), dw.data<float>(), db ? db.data<float>() : nullptr,
                         parts, accumulate_w, accumulate_b});
  }

 private:
  ConvCase c_;
  StripKind kind_;
  int taps_;
  StripNumbers sums_, gradients_;
};

}  // namespace

// With these pads y has one place for each `stride` of x.
bool serves_strips(const ConvCase& c) {
  const int64_t pad = c.w[2] / 2;
  return is_half(c.dtype) && c.w[2] == c.w[3] && (c.w[2] == 3 || c.w[2] == 5) &&
         c.stride[0] == c.stride[1] && c.stride[0] <= 2 &&
         c.dilation == std::vector<int64_t>{1, 1} && c.pad == std::vector<int64_t>{pad, pad};
}

std::unique_ptr<WeightedSum> make_depthwise_strips(const ConvCase& c) {
  return std::make_unique<DepthwiseStrips>(c);
}

}  // namespace crema
