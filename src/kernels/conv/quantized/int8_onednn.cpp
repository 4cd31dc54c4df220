// Convolution and fully connected layers of 8-bit integers by oneDNN, on CPUs whose instructions sum
// four products of bytes without overflow (VNNI), in plans without gradients. x is rounded in each pass,
// unless it arrives as bytes, the weights once (pack()). Sums are exact; the results are float32, or bytes
// where nothing else reads them: a value within rounding errors of a half may become its other neighbor.
#include <cstring>

#include "base/system.h"
#include "kernels/conv/quantized/bytes.h"
#include "kernels/core/onednn.h"

namespace crema {
namespace {

bool has_byte_products() {
#ifdef __x86_64__
  return __builtin_cpu_supports("avx512vnni");
#else
  return false;
#endif
}

class Int8Conv final : public ConvOfBytes {
 public:
  explicit Int8Conv(const ConvCase& c)
      : c_(c), x_(*c.quantization->x), w_(*c.quantization->w), factors_(factors_of_bytes(c)) {
    if (y_is_bytes()) {
      y_step_ = c.y_bytes->step;
      for (float& factor : factors_) factor /= y_step_;
    }
  }

  bool prepare(std::string& reason) {
    using Plan = dnnl::convolution_forward;
    const Format order{c_.order, nullptr};
    const Desc x = onednn::describe_integers(c_.x, x_.low < 0, order),
               y = y_is_bytes() ? onednn::describe_integers(c_.y, c_.y_bytes->low < 0, order)
                                : onednn::describe(c_.y, DType::f32, order),
               b = c_.bias ? onednn::describe({c_.w[0]}, DType::f32, {}) : Desc();
    dnnl::memory::dims dilation = c_.dilation;
    for (auto& step : dilation) step -= 1;  // oneDNN counts the elements between two taps
    const Relu relu = c_.sum ? c_.sum_relu : c_.relu;
    const auto plan = onednn::plan<Plan>(
        on_,
        onednn::attributes_of_integers(factors_, c_.groups, c_.sum ? y : Desc(),
                                       relu.on ? std::optional(relu.slope) : std::nullopt),
        dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, x,
        onednn::describe_any_integer_weights(c_.w, c_.groups), b, y, c_.stride, dilation, c_.pad,
        c_.pad);
    // oneDNN 2.6's products of matrices are wrong for some groups of bytes with a sign.
    const char* const found = plan ? plan.impl_info_str() : "ref";
    if (std::strstr(found, "ref") || std::strstr(found, "gemm:") ||
        (x_.low < 0 && std::strstr(found, "gemm_"))) {
      reason = "oneDNN has no fast kernel for it";
      return false;
    }
    weights_ = plan.weights_desc();
    forward_ = onednn::Call(
        on_, Plan(plan),
        {{DNNL_ARG_SRC, x},
         {DNNL_ARG_WEIGHTS, weights_},
         {DNNL_ARG_BIAS, b},
         {DNNL_ARG_DST, y},
         {kAdded, c_.sum ? y : Desc()},
         {onednn::kFactors,
          onednn::kFactors == 0 ? Desc() : onednn::describe({c_.w[0]}, DType::f32, {})},
         {DNNL_ARG_SCRATCHPAD, plan.scratchpad_desc()}});
    x_bytes_ = c_.x_bytes ? 0 : aligned(static_cast<size_t>(c_.x.count()));
    b_bytes_ = aligned(static_cast<size_t>(c_.w[0]) * sizeof(float));
    scratch_bytes_ = plan.scratchpad_desc().get_size();
    form_ = cat("int8 by oneDNN, sign ", x_.low < 0, ",", onednn::name_of_layout(weights_),
                name_of_integers(w_));
    return true;
  }

  LinearKernelFeatures features() const override { return {.sum = true, .y_bytes = y_is_bytes()}; }
  size_t workspace() const override { return x_bytes_ + b_bytes_ + scratch_bytes_; }
  PackedForm packed_form() const override { return {form_.c_str(), weights_.get_size()}; }

  void pack(Context&, const Tensor& w, const Tensor& packed) const override {
    const int64_t rows = c_.w[0], size = c_.w.count(1);
    std::vector<int8_t> bytes(static_cast<size_t>(rows * size));
    const float* const from = w.data<float>();
    for (int64_t row = 0; row < rows; ++row) {
      const float step = w_.step(static_cast<size_t>(row));
      for (int64_t i = row * size; i < (row + 1) * size; ++i)
        bytes[i] = byte_of(from[i], step, w_.low, w_.high);
    }
    onednn::Engine on;
    onednn::reorder_call(on, onednn::describe_integer_weights(c_.w, c_.groups), weights_)
        .run(on, {{DNNL_ARG_FROM, bytes.data()}, {DNNL_ARG_TO, packed.raw()}});
  }

  void forward_with_bytes(Context&, const LinearOperands& t, const Tensor& workspace) override {
    char* const memory = workspace.data<char>();
    if (!t.x_bytes) round_x(t.x.data<float>(), reinterpret_cast<int8_t*>(memory));
    float* bias = t.b ? t.b.data<float>() : nullptr;
    if (bias && (onednn::kFactorsMultiplyBias || y_is_bytes())) {
      bias = reinterpret_cast<float*>(memory + x_bytes_);
      for (size_t i = 0; i < factors_.size(); ++i)
        bias[i] =
            t.b.data<float>()[i] / (onednn::kFactorsMultiplyBias ? factors_[i] * y_step_ : y_step_);
    }
    forward_.run(on_, {{DNNL_ARG_SRC, t.x_bytes ? t.x_bytes.raw() : memory},
                       {DNNL_ARG_WEIGHTS, t.w.raw()},
                       {DNNL_ARG_BIAS, bias},
                       {DNNL_ARG_DST, y_is_bytes() ? t.y_bytes.raw() : t.y.raw()},
                       {kAdded, t.added.raw()},
                       {onednn::kFactors, factors_.data()},
                       {DNNL_ARG_SCRATCHPAD, memory + x_bytes_ + b_bytes_}});
  }

 private:
  using Desc = onednn::Desc;
  static constexpr int kAdded = DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1;

  // oneDNN writes y or its bytes, and cannot divide what is added by their step. Its bytes saturate at their ends.
  bool y_is_bytes() const {
    return c_.only_y_bytes && !c_.sum &&
           (*c_.y_bytes == QuantizedValues{c_.y_bytes->step, -128, 127} ||
            *c_.y_bytes == QuantizedValues{c_.y_bytes->step, 0, 255});
  }

  // The low byte of a number is the same with and without a sign.
  void round_x(const float* x, int8_t* to) const {
    const float step = x_.step, low = x_.low, high = x_.high;
    const int64_t count = c_.x.count();
#pragma omp parallel for simd schedule(static) if (count > 16384)
    for (int64_t i = 0; i < count; ++i) to[i] = byte_of(x[i], step, low, high);
  }

  ConvCase c_;
  QuantizedValues x_;
  QuantizedWeights w_;
  std::vector<float> factors_;  // one for each output, divided by y_step_
  float y_step_ = 1;            // of y's bytes
  onednn::Engine on_;
  onednn::Call forward_;
  Desc weights_;
  std::string form_;
  size_t x_bytes_ = 0, b_bytes_ = 0, scratch_bytes_ = 0;
};

std::unique_ptr<LinearKernel> make_conv_int8(Context&, const ConvCase& c, std::string& reason) {
  if (const char* refusal = refusal_of_bytes(c)) {
    reason = refusal;
  } else if (c.dtype != DType::f32 || c.x_channels != 0 || c.x.axes() > 5) {
    reason = "for float32 with one to three spatial axes only";
  } else if (!has_byte_products()) {
    reason = "the processor has no VNNI instructions";
  } else if (!may_generate_code() || !has_room_for_code(kCodeOfConvolution)) {
    reason = "no code may be generated here";
  } else {
    for (const std::string& problem :
         {onednn::too_large(c.x), onednn::too_large(c.y), onednn::too_large_weights(c.w)})
      if (reason.empty()) reason = problem;
    auto conv = std::make_unique<Int8Conv>(c);
    try {
      if (reason.empty() && conv->prepare(reason)) return conv;
    } catch (const dnnl::error& error) {
      reason = error.what();
    }
  }
  return nullptr;
}

REGISTER_KERNEL(quantized_conv_kernels, "onednn_int8", RunsOn::cpu, 50, make_conv_int8);

}  // namespace
}  // namespace crema
