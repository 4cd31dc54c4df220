// Convolution and fully connected layers of 8-bit integers on tensor cores, in plans without gradients. x is
// rounded in each pass, the weights once (pack()). Sums are exact; bias, ReLU and a sum are computed in float32.
#include "device/gpu.h"
#include "kernels/conv/implicit_gemm/int8_gemm.h"
#include "kernels/conv/quantized/bytes.h"
#include "kernels/conv/quantized/round_to_bytes.h"
#include "tensor/part.h"

namespace crema {
namespace {

class Int8GpuConv final : public ConvOfBytes {
 public:
  Int8GpuConv(Context& context, const ConvCase& c)
      : c_(c),
        channels_(Int8Gemm::padded_channels(c)),
        product_(context, c, {c.quantization->x->low < 0, factors_of_bytes(c)}),
        form_(cat("int8, ", channels_, " channels", name_of_steps(*c.quantization->w))) {
    const std::string key =
        cat("int8_gemm ", c.quantization->x->low < 0 ? "" : "unsigned ", sizes_of(c));
    if (!product_.take_known(context, key)) tune(context, key);
  }

  size_t workspace() const override {
    return static_cast<size_t>(c_.x[0] * c_.x.count(2) * c_.groups * channels_);
  }
  PackedForm packed_form() const override {
    return {form_.c_str(), static_cast<size_t>(c_.w[0] * c_.w.count(2) * channels_)};
  }
  void pack(Context& context, const Tensor& w, const Tensor& packed) const override {
    round_weights_to_bytes(context, c_, channels_, w, packed);
  }

 private:
  void run(Context& context, const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& added,
           const Tensor& y, const Tensor& workspace) override {
    round_to_bytes(context, c_, channels_, x, workspace);
    product_.run(
        context,
        {.x = workspace.raw(), .w = w.raw(), .b = b.raw(), .out = y.raw(), .added = added.raw()});
  }

  // Times the product alone, on memory that has any values.
  void tune(Context& context, const std::string& key) {
    Tuning& tuning = context.gpu().tuning;
    const size_t x = aligned(workspace()), w = aligned(packed_form().bytes),
                 y = aligned(static_cast<size_t>(c_.y.count()) * size_of(c_.dtype));
    char* const memory = static_cast<char*>(tuning.scratch(context, x + w + 2 * y));
    if (!memory) return;
    const ProductTensors tensors{.x = memory,
                                 .w = memory + x,
                                 .out = memory + x + w,
                                 .added = c_.sum ? memory + x + w + y : nullptr};
    product_.tune(context, key, [&](double best) {
      return tuning.time_repeated(
          context, [&] { product_.run(context, tensors); }, best);
    });
  }

  ConvCase c_;
  int64_t channels_;  // that a group of bytes has
  Int8Gemm product_;
  std::string form_;
};

std::unique_ptr<LinearKernel> make_int8_gemm(Context& context, const ConvCase& c,
                                             std::string& reason) {
  if (const char* refusal = refusal_of_bytes(c)) {
    reason = refusal;
  } else if (c.dtype == DType::f64) {
    reason = cat("no ", name_of(c.dtype));
  } else if (Int8Gemm::supports(c, reason) && has_async_mma(context, reason)) {
    return std::make_unique<Int8GpuConv>(context, c);
  }
  return nullptr;
}

REGISTER_KERNEL(quantized_conv_kernels, "int8_gemm", RunsOn::gpu, 50, make_int8_gemm);

}  // namespace
}  // namespace crema
