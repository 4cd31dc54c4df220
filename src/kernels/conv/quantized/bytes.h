// Cases whose inputs and weights are rounded to bytes, for kernels that multiply them as integers.
#pragma once

#include <cmath>

#include "base/host_device.h"
#include "kernels/conv/conv.h"

namespace crema {

// The integer of a value, as its low byte, which is the same with and without a sign. Bytes have no NaN: it
// becomes the lowest one.
CREMA_HD inline int8_t byte_of(float x, float step, float low, float high) {
  const float n = std::rint(x / step);
  return static_cast<int8_t>(static_cast<int>(n > low ? (n < high ? n : high) : low));
}

// byte_of() without a division, for many values of one range.
struct ByteRounding {
  float step, inverse, low, high;  // inverse: 1 / step
  explicit ByteRounding(const QuantizedValues& values)
      : step(values.step), inverse(1 / values.step), low(values.low), high(values.high) {}
  // x / step. Each correction adds the remainder's quotient, and two make the nearest float of it. What is
  // clipped anyway needs none.
  CREMA_HD float quotient(float x) const {
    const float q = x * inverse;
    if (!(std::fabs(q) < 1e6f)) return q;
    const float better = std::fma(std::fma(-q, step, x), inverse, q);
    return std::fma(std::fma(-better, step, x), inverse, better);
  }
  CREMA_HD int8_t operator()(float x) const { return byte_of(quotient(x), 1, low, high); }
};

// Why kernels of bytes do not take the case; null: they may.
inline const char* refusal_of_bytes(const ConvCase& c) {
  const LinearQuantization& q = *c.quantization;
  if (!c.packs_weights || c.backward_data || c.backward_weights)
    return "for plans without gradients only";
  if (!q.x || !q.w || q.w->follows() || q.y || !q.x->is_byte() || q.w->low < -128 ||
      q.w->high > 127)
    return "for 8-bit inputs and weights only";
  if (c.x.count() == 0 || c.y.count() == 0) return "nothing to compute";
  return nullptr;
}

// The sums of each output are multiplied by its factor.
inline std::vector<float> factors_of_bytes(const ConvCase& c) {
  std::vector<float> factors;
  for (int64_t row = 0; row < c.w[0]; ++row)
    factors.push_back(c.quantization->x->step * c.quantization->w->step(static_cast<size_t>(row)));
  return factors;
}

// The integers of the weights and their steps, for the name of a packed form.
inline std::string name_of_integers(const QuantizedWeights& w) {
  std::string name = cat(" ", w.low, " ", w.high);
  for (const float step : w.steps) name += cat(" ", std::bit_cast<uint32_t>(step));
  return name;
}

// A convolution of integers: forward only.
class ConvOfBytes : public LinearKernel {
 public:
  LinearKernelFeatures features() const override { return {.sum = true}; }
  void forward(Context& context, const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& y,
               const Tensor& workspace) override {
    forward_with_bytes(context, {.x = x, .w = w, .b = b, .y = y}, workspace);
  }
  void forward_with_sum(Context& context, const Tensor& x, const Tensor& w, const Tensor& b,
                        const Tensor& added, Relu, const Tensor& y,
                        const Tensor& workspace) override {
    forward_with_bytes(context, {.x = x, .w = w, .b = b, .added = added, .y = y}, workspace);
  }
  void backward_data(Context&, const OutputGradient&, const Tensor&, const Tensor&,
                     const Tensor&) override {
    fail("the convolution of integers computes no gradients");
  }
  void backward_weights(Context&, const Tensor&, const OutputGradient&, const Tensor&,
                        const Tensor&, bool, bool, const Tensor&) override {
    fail("the convolution of integers computes no gradients");
  }
};

}  // namespace crema
