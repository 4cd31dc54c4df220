// Convolution and fully connected layers of 8-bit integers on tensor cores, in plans without gradients. x is
// rounded in each pass, unless it arrives as bytes, the weights once (pack()). Sums are exact; bias, ReLU and a sum are computed in float32.
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
        form_(cat("int8, ", channels_, " channels", name_of_integers(*c.quantization->w))) {
    const std::string key =
        cat("int8_gemm ", c.quantization->x->low < 0 ? "" : "unsigned ", sizes_of(c));
    if (!product_.take_known(context, key)) tune(context, key);
  }

  LinearKernelFeatures features() const override {
    return {.sum = true, .y_bytes = c_.y_bytes && c_.order == Order::channels_last};
  }
  size_t workspace() const override { return c_.x_bytes && !is_padded() ? 0 : bytes_of_x(); }
  PackedForm packed_form() const override {
    return {form_.c_str(), static_cast<size_t>(c_.w[0] * c_.w.count(2) * channels_)};
  }
  void pack(Context& context, const Tensor& w, const Tensor& packed) const override {
    round_weights_to_bytes(context, c_, channels_, w, packed);
  }

  void forward_with_bytes(Context& context, const LinearOperands& t,
                          const Tensor& workspace) override {
    const bool ready = t.x_bytes && !is_padded();
    if (!ready) round_to_bytes(context, c_, channels_, t.x_bytes ? t.x_bytes : t.x, workspace);
    product_.run(context, {.x = ready ? t.x_bytes.raw() : workspace.raw(),
                           .w = t.w.raw(),
                           .b = t.b.raw(),
                           .out = t.y.raw(),
                           .out_bytes = static_cast<int8_t*>(t.y_bytes.raw()),
                           .added = t.added.raw()});
  }

 private:
  bool is_padded() const { return channels_ != c_.w[1]; }
  size_t bytes_of_x() const {
    return static_cast<size_t>(c_.x[0] * c_.x.count(2) * c_.groups * channels_);
  }

  // Times the product alone, on memory that has any values.
  void tune(Context& context, const std::string& key) {
    Tuning& tuning = context.gpu().tuning;
    const size_t x = aligned(bytes_of_x()), w = aligned(packed_form().bytes),
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
  } else if (is_half(c.dtype) && c.groups == 1 && c.w[1] <= 4) {
    reason = "of images with few channels, convolutions in 16 bits are faster";
  } else if (Int8Gemm::supports(c, reason) && has_async_mma(context, reason)) {
    return std::make_unique<Int8GpuConv>(context, c);
  }
  return nullptr;
}

REGISTER_KERNEL(quantized_conv_kernels, "int8_gemm", RunsOn::gpu, 50, make_int8_gemm);

}  // namespace
}  // namespace crema
