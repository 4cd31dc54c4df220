#include "device/memory.h"
#include "kernels/conv/conv_pooled.h"
#include "kernels/conv/implicit_gemm/direct_conv.h"
#include "tensor/on.h"

namespace crema {
namespace {

class PooledProducts final : public PooledConv {
 public:
  PooledProducts(Context& context, const ConvCase& c)
      : c_(c),
        fprop_(context, c, ConvCall::fprop),
        dgrad_(context, c, ConvCall::dgrad),
        wgrad_(context, c, ConvCall::wgrad) {}

  bool supports() const {
    return (!c_.forward || fprop_.choice_count() > 0) &&
           (!c_.backward_data || dgrad_.choice_count() > 0) &&
           (!c_.backward_weights || wgrad_.choice_count() > 0);
  }

  // On scratch memory, if there is enough.
  void tune(Context& context) {
    const Shape x{c_.x.count() / c_.x[1] * std::max(c_.x[1], c_.x_channels)},
        w{c_.w.count() / c_.w[1] * std::max(c_.w[1], c_.x_channels)},
        y{c_.y[0] * c_.y[1] * c_.pooled[0] * c_.pooled[1]};
    const auto bytes = static_cast<size_t>(2 * (x.count() + w.count() + 2 * y.count()) + y.count() +
                                           4 * w.count());
    const bool fits = free_memory(context) >= bytes + (size_t{16} << 20);
    const auto tensor = [&](const Shape& shape, DType dtype) {
      if (!fits) return Tensor();
      Tensor made(context, shape, dtype);
      check_cuda(cudaMemsetAsync(made.raw(), 0x23, made.bytes(), context.gpu().stream),
                 "filling memory");
      return made;
    };
    const auto tune_call = [&](ConvCall call, DirectConv& product,
                               const std::function<void()>& work) {
      const std::string key =
          cat("pooled ", name_of(call), product.adds() ? " adds " : " ", sizes_of(c_));
      if (!c_.calls().has(call) || product.take_known(context, key) || !fits) return;
      product.tune(context, key, [&](double best) {
        return context.gpu().tuning.time_repeated(context, work, best);
      });
    };
    const Tensor images = tensor(x, c_.dtype), weights = tensor(w, c_.dtype),
                 maxima = tensor(y, c_.dtype), argmax = tensor(y, DType::u8),
                 bias = c_.bias ? tensor({c_.w[0]}, c_.dtype) : Tensor(),
                 dw = tensor(w, DType::f32),
                 db = c_.bias ? tensor({c_.w[0]}, DType::f32) : Tensor();
    tune_call(ConvCall::fprop, fprop_,
              [&] { forward(context, images, weights, bias, maxima, argmax, {}); });
    tune_call(ConvCall::dgrad, dgrad_,
              [&] { backward_data(context, maxima, argmax, 1, weights, images); });
    const bool add = !context.repeatable;
    tune_call(ConvCall::wgrad, wgrad_,
              [&] { backward_weights(context, images, maxima, argmax, 1, dw, db, add, add); });
  }

  bool atomic_wgrad() const override { return c_.backward_weights && wgrad_.adds(); }
  Format weights_format() const override { return {c_.order, nullptr, c_.x_channels}; }

  void forward(Context& context, const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& y,
               const Tensor& argmax, const DropoutMask& mask) override {
    ProductTensors t;
    t.x = x.raw(), t.w = w.raw(), t.b = b.raw(), t.out = y.raw();
    t.argmax = argmax.data<uint8_t>();
    t.dropout = mask;
    fprop_.run(context, t);
  }
  void backward_data(Context& context, const Tensor& dy, const Tensor& argmax, float factor,
                     const Tensor& w, const Tensor& dx) override {
    ProductTensors t;
    t.dy = dy.raw(), t.w = w.raw(), t.out = dx.raw();
    t.argmax = argmax.data<uint8_t>();
    t.gradient_factor = factor;
    dgrad_.run(context, t);
  }
  void backward_weights(Context& context, const Tensor& x, const Tensor& dy, const Tensor& argmax,
                        float factor, const Tensor& dw, const Tensor& db, bool accumulate_w,
                        bool accumulate_b) override {
    ProductTensors t;
    t.x = x.raw(), t.dy = dy.raw(), t.out = dw.raw();
    t.argmax = argmax.data<uint8_t>();
    t.db = db.data<float>();
    t.gradient_factor = factor;
    t.accumulate_w = accumulate_w, t.accumulate_b = accumulate_b;
    wgrad_.run(context, t);
  }

 private:
  ConvCase c_;
  DirectConv fprop_, dgrad_, wgrad_;
};

std::unique_ptr<PooledConv> make_pooled_conv(Context& context, const ConvCase& c,
                                             std::string& reason) {
  if (!supports_products(c, reason) || !has_async_mma(context, reason)) return nullptr;
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
