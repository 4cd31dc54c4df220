// Rounds what another kernel reads and writes: the reference of quantized convolutions, and what
// computes them in training, on GPUs and with other than 8 bits. The sums of products are those of
// float32.
#include <functional>
#include <string_view>

#include "kernels/conv/conv.h"
#include "kernels/conv/dense.h"
#include "kernels/move/reorder.h"
#include "tensor/part.h"

namespace crema {
namespace {

class QuantizedLinear final : public LinearKernel {
 public:
  QuantizedLinear(Context& context, const ConvCase& c, std::unique_ptr<LinearKernel> inner)
      : c_(c), quantization_(*c.quantization), inner_(std::move(inner)) {
    const size_t element = size_of(c.dtype);
    if (quantization_.w) {
      const std::vector<float>& steps = quantization_.w->steps;
      steps_ = Tensor(context,
                      {quantization_.w->follows() ? c.w[0] : static_cast<int64_t>(steps.size())});
      if (quantization_.w->follows()) {
        steps_bytes_ = aligned(steps_workspace(c.w));
      } else {
        from_floats(context, steps.data(), steps_);
      }
      rows_bytes_ = aligned(static_cast<size_t>(c.w.count()) * element);
      w_bytes_ = aligned(static_cast<size_t>(inner_->weights_format().elements(c.w)) * element);
    }
    if (quantization_.x)
      x_bytes_ = aligned(static_cast<size_t>(x_format().elements(c.x)) * element);
    if (c.packs_weights && quantization_.w) {
      const PackedForm form = inner_->packed_form();
      form_ = cat("quantized by ", hash_of_steps(), " ",
                  form.bytes > 0 ? form.name : inner_->weights_format().str());
      packed_bytes_ = form.bytes > 0 ? form.bytes : w_bytes_;
    }
  }

  Format weights_format() const override { return inner_->weights_format(); }
  size_t workspace() const override { return own_bytes() + inner_->workspace(); }
  LinearKernelFeatures features() const override {
    const LinearKernelFeatures inner = inner_->features();
    return {.relu_gradient = inner.relu_gradient,
            .bias_gradient = inner.bias_gradient,
            .atomic_wgrad = inner.atomic_wgrad,
            .sum = inner.sum};
  }

  PackedForm packed_form() const override {
    if (packed_bytes_ == 0) return inner_->packed_form();
    return {form_.c_str(), packed_bytes_};
  }
  void pack(Context& context, const Tensor& w, const Tensor& packed) const override {
    if (packed_bytes_ == 0) return inner_->pack(context, w, packed);
    const Tensor rows(context, c_.w, w.dtype());
    if (quantization_.w->follows())
      steps_of_rows(context, w, quantization_.w->high, steps_,
                    Tensor(context, {static_cast<int64_t>(steps_bytes_)}, DType::u8));
    quantize_rows(context, steps_, quantization_.w->low, quantization_.w->high, w, rows);
    if (inner_->packed_form().bytes > 0) return inner_->pack(context, rows, packed);
    reorder(context, rows, part_of(packed, 0, c_.w, c_.dtype, inner_->weights_format()));
  }

  void forward(Context& context, const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& y,
               const Tensor& workspace) override {
    has_steps_ = false;  // the weights may be others than those of the last pass
    inner_->forward(context, rounded_x(context, x, workspace), rounded_w(context, w, workspace), b,
                    y, rest(workspace));
    if (quantization_.y) quantize(context, *quantization_.y, y, y);
  }
  void forward_with_sum(Context& context, const Tensor& x, const Tensor& w, const Tensor& b,
                        const Tensor& added, Relu relu, const Tensor& y,
                        const Tensor& workspace) override {
    if (quantization_.y)  // the top is what is rounded, not the sum
      return LinearKernel::forward_with_sum(context, x, w, b, added, relu, y, workspace);
    has_steps_ = false;
    inner_->forward_with_sum(context, rounded_x(context, x, workspace),
                             rounded_w(context, w, workspace), b, added, relu, y, rest(workspace));
  }
  void forward_with_bytes(Context& context, const LinearOperands& t,
                          const Tensor& workspace) override {
    const Tensor x = part_of(workspace, 0, c_.x, c_.dtype, x_format());
    values_of_bytes(context, *quantization_.x, t.x_bytes, x);
    const Tensor w = rounded_w(context, t.w, workspace);
    if (t.added && !quantization_.y)
      return inner_->forward_with_sum(context, x, w, t.b, t.added, c_.sum_relu, t.y,
                                      rest(workspace));
    inner_->forward(context, x, w, t.b, t.y, rest(workspace));
    if (quantization_.y) quantize(context, *quantization_.y, t.y, t.y);
    if (t.added) add_and_relu(context, t.added, c_.sum_relu, t.y);
  }
  void backward_data(Context& context, const OutputGradient& g, const Tensor& w, const Tensor& dx,
                     const Tensor& workspace) override {
    inner_->backward_data(context, g, rounded_w(context, w, workspace), dx, rest(workspace));
  }
  void backward_weights(Context& context, const Tensor& x, const OutputGradient& g,
                        const Tensor& dw, const Tensor& db, bool accumulate_w, bool accumulate_b,
                        const Tensor& workspace) override {
    inner_->backward_weights(context, rounded_x(context, x, workspace), g, as_inner(dw), db,
                             accumulate_w, accumulate_b, rest(workspace));
  }

 private:
  Format x_format() const { return {c_.order, nullptr, c_.x_channels}; }
  size_t own_bytes() const {
    return x_bytes_ + (packed_bytes_ == 0 ? rows_bytes_ + w_bytes_ + steps_bytes_ : 0);
  }
  size_t hash_of_steps() const {
    const QuantizedWeights& w = *quantization_.w;
    std::vector<float> numbers = w.steps;
    numbers.insert(numbers.end(), {w.low, w.high});
    return std::hash<std::string_view>()(
        {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float)});
  }

  // A fully connected layer's columns may be in another order, which is that of its x. To the inner kernel
  // they are columns like any.
  Tensor as_inner(const Tensor& w) const {
    return part_of(w, 0, c_.w, w.dtype(), inner_->weights_format());
  }

  // The workspace: x, weights in rows, weights in the inner kernel's format, what finding their steps
  // takes, the inner kernel's workspace.
  Tensor rounded_x(Context& context, const Tensor& x, const Tensor& workspace) const {
    if (!quantization_.x) return x;
    const Tensor to = part_of(workspace, 0, x.shape(), x.dtype(), x.format());
    quantize(context, *quantization_.x, x, to);
    return to;
  }
  Tensor rounded_w(Context& context, const Tensor& w, const Tensor& workspace) const {
    if (inner_->packed_form().bytes > 0) return w;
    if (!quantization_.w || packed_bytes_ > 0)
      return part_of(w, 0, c_.w, c_.dtype, inner_->weights_format());
    const Tensor to =
        part_of(workspace, x_bytes_ + rows_bytes_, c_.w, c_.dtype, inner_->weights_format());
    const Tensor given = as_inner(w);
    const bool in_rows = same_layout(given.format(), Format::row_major(), c_.w);
    const Tensor rows = in_rows ? given : part_of(workspace, x_bytes_, c_.w, c_.dtype);
    if (!in_rows) reorder(context, given, rows);
    if (quantization_.w->follows() && !has_steps_) {
      has_steps_ = true;
      steps_of_rows(context, rows, quantization_.w->high, steps_,
                    part_of(workspace, x_bytes_ + rows_bytes_ + w_bytes_,
                            {static_cast<int64_t>(steps_bytes_)}, DType::u8));
    }
    const Tensor& rounded = in_rows ? to : rows;
    quantize_rows(context, steps_, quantization_.w->low, quantization_.w->high, rows, rounded);
    if (!in_rows) reorder(context, rows, to);
    return to;
  }
  Tensor rest(const Tensor& workspace) const {
    if (inner_->workspace() == 0) return {};
    return part_of(workspace, own_bytes(), {static_cast<int64_t>(inner_->workspace())}, DType::u8);
  }

  ConvCase c_;
  LinearQuantization quantization_;
  std::unique_ptr<LinearKernel> inner_;
  Tensor steps_;  // the weights' steps
  // They are those of the weights that the last forward pass read, which backward rounds again.
  mutable bool has_steps_ = false;
  size_t x_bytes_ = 0, rows_bytes_ = 0, w_bytes_ = 0, steps_bytes_ = 0;
  std::string form_;
  size_t packed_bytes_ = 0;  // 0: not packed by this kernel
};

// A fully connected layer, as conv_case_of() writes it.
bool is_dense(const ConvCase& c) {
  return c.x.axes() == 3 && c.x[2] == 1 && c.w[2] == 1 && c.y[2] == 1 && c.groups == 1 &&
         c.x_channels == 0 && c.order == Order::channels_last && !c.sum && c.pooled.empty();
}

std::unique_ptr<LinearKernel> make_quantized_linear(Context& context, const ConvCase& c,
                                                    std::string&) {
  if (context.device() == Device::cpu && is_dense(c) && !c.packs_weights) {
    // Matrix products read the weights in rows: a convolution would reorder them in each pass.
    DenseCase product;
    product.rows = c.x[0];
    product.inputs = c.w[1];
    product.outputs = c.w[0];
    product.bias = c.bias;
    product.relu = c.relu;
    product.relu_gradient_applied = c.relu_gradient_applied;
    product.backward_data = c.backward_data;
    product.backward_weights = c.backward_weights;
    product.is_candidate = c.is_candidate;
    product.dtype = c.dtype;
    product.precision = c.precision;
    return std::make_unique<QuantizedLinear>(context, c, make_dense(context, product));
  }
  ConvCase inner = c;
  inner.quantization.reset();
  inner.statistics = inner.affine_input = inner.x_bytes = inner.only_y_bytes = false;
  inner.y_bytes.reset();
  return std::make_unique<QuantizedLinear>(context, c, make_conv(context, inner));
}

REGISTER_KERNEL(quantized_conv_kernels, "plain", RunsOn::both, 0, make_quantized_linear);

}  // namespace

constinit KernelMakers<LinearKernel, ConvCase> quantized_conv_kernels("the quantized convolution");

}  // namespace crema
