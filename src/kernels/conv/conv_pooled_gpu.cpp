#include "device/memory.h"
#include "kernels/conv/conv_pooled.h"
#include "kernels/conv/implicit_gemm/implicit_gemm.h"
#include "tensor/on.h"

namespace crema {
namespace {

class PooledProducts final : public PooledConv {
 public:
  PooledProducts(Context& context, const ConvCase& c)
      : c_(c),
        fprop_(context, c, ConvCall::fprop, false),
        dgrad_(context, c, ConvCall::dgrad, false),
        wgrad_(context, c, ConvCall::wgrad, false) {}

  bool supports() const {
    return (!c_.forward || fprop_.choice_count() > 0) &&
           (!c_.backward_data || dgrad_.choice_count() > 0) &&
           (!c_.backward_weights || wgrad_.choice_count() > 0);
  }

  // On scratch memory, if there is enough.
  void tune(Context& context) {
    ImplicitGemmTensors none;
    const auto tensor = [&](const Shape& shape, DType dtype) {
      Tensor made(context, Shape{shape.count()}, dtype);
      check_cuda(cudaMemsetAsync(made.raw(), 0x23, made.bytes(), context.gpu().stream),
                 "filling memory");
      return made;
    };
    const Shape x{c_.x.count() / c_.x[1] * std::max(c_.x[1], c_.x_channels)},
        w{c_.w.count() / c_.w[1] * std::max(c_.w[1], c_.x_channels)},
        y{c_.y[0] * c_.y[1] * c_.pooled[0] * c_.pooled[1]};
    const auto bytes = static_cast<size_t>(2 * (x.count() + w.count() + 2 * y.count()) + y.count() +
                                           4 * w.count());
    if (free_memory(context) < bytes + (size_t{16} << 20)) {
      for (ImplicitGemm* product : {&fprop_, &dgrad_, &wgrad_}) product->tune(context, {});
      return;
    }
    const Tensor images = tensor(x, c_.dtype), weights = tensor(w, c_.dtype),
                 maxima = tensor(y, c_.dtype), argmax = tensor(y, DType::u8),
                 bias = tensor(Shape{c_.w[0]}, c_.dtype), dw = tensor(w, DType::f32),
                 db = tensor(Shape{c_.w[0]}, DType::f32);
    ImplicitGemmTensors t;
    t.argmax = argmax.data<uint8_t>();
    t.x = images.raw(), t.w = weights.raw(), t.out = maxima.raw();
    if (c_.bias) t.b = bias.raw();
    if (c_.forward) fprop_.tune(context, t);
    t.x = nullptr, t.dy = maxima.raw(), t.out = images.raw();
    if (c_.backward_data) dgrad_.tune(context, t);
    t.x = images.raw(), t.out = dw.raw();
    if (c_.bias) t.db = db.data<float>();
    t.accumulate_w = t.accumulate_b = !context.repeatable;
    if (c_.backward_weights) wgrad_.tune(context, t);
  }

  bool atomic_wgrad() const override { return c_.backward_weights && wgrad_.adds(); }
  Format weights_format() const override { return {c_.order, nullptr, c_.x_channels}; }

  void forward(Context& context, const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& y,
               const Tensor& argmax, const DropoutMask& mask) override {
    ImplicitGemmTensors t;
    t.x = x.raw(), t.w = w.raw(), t.b = b.raw(), t.out = y.raw();
    t.argmax = argmax.data<uint8_t>();
    t.dropout = mask;
    fprop_.run(context, t);
  }
  void backward_data(Context& context, const Tensor& dy, const Tensor& argmax, float factor,
                     const Tensor& w, const Tensor& dx) override {
    ImplicitGemmTensors t;
    t.dy = dy.raw(), t.w = w.raw(), t.out = dx.raw();
    t.argmax = argmax.data<uint8_t>();
    t.gradient_factor = factor;
    dgrad_.run(context, t);
  }
  void backward_weights(Context& context, const Tensor& x, const Tensor& dy, const Tensor& argmax,
                        float factor, const Tensor& dw, const Tensor& db, bool accumulate_w,
                        bool accumulate_b) override {
    ImplicitGemmTensors t;
    t.x = x.raw(), t.dy = dy.raw(), t.out = dw.raw();
    t.argmax = argmax.data<uint8_t>();
    t.db = db.data<float>();
    t.gradient_factor = factor;
    t.accumulate_w = accumulate_w, t.accumulate_b = accumulate_b;
    wgrad_.run(context, t);
  }

 private:
  ConvCase c_;
  ImplicitGemm fprop_, dgrad_, wgrad_;
};

std::unique_ptr<PooledConv> make_pooled_conv(Context& context, const ConvCase& c,
                                             std::string& reason) {
  if (!ImplicitGemm::supports(c, reason) || !has_async_mma(context, reason)) return nullptr;
  if (c.y.axes() != 4) {
    reason = "for images of two axes only";
    return nullptr;
  }
  auto made = std::make_unique<PooledProducts>(context, c);
  if (!made->supports()) {
    reason = "images too small, or too large for shared memory";
    return nullptr;
  }
  made->tune(context);
  return made;
}

REGISTER_KERNEL(pooled_conv_kernels, "pooled", RunsOn::gpu, 0, make_pooled_conv);

}  // namespace
}  // namespace crema
