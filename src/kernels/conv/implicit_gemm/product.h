// Products: one call of a convolution or a fully connected layer on tensor cores, by one of several
// choices of tiles. For nets whose kernels are small, where a library's extra steps (padding
// channels, widening results, bias gradients) cost more than the product. Float accumulation,
// channels-last. Only files of a CUDA build include it.
//   fprop  y[p,o] = relu(b[o] + sum over k of x[p,k] w[o,k])     p: a position of y
//   dgrad  dx[q,c] = sum over (k, o) of g[q,(k,o)] w[o,k,c]      q: a position of x
//   wgrad  dw[o,k] = sum over p of g[p,o] x[p,k], db[o] = sum over p of g[p,o]
// with k = (tap, channel), x[p,k] the element of x under that tap of the window at p, and g = dy,
// through the ReLU if y is given. Sums are added in a fixed order, except those of dw and db if
// adds().
#pragma once

#include <functional>
#include <optional>

#include "device/gpu.h"
#include "kernels/conv/conv.h"
#include "kernels/pointwise/dropout.h"

namespace crema {

// The operands of a call; which of them are used depends on the call. Pointers on the GPU; x,
// w, y, dy, dx, b in the case's type, dw and db in float32.
struct ProductTensors {
  const void *x = nullptr, *w = nullptr, *b = nullptr, *dy = nullptr;
  const void* y = nullptr;  // output of the ReLU whose gradient is applied first; null: none
  void* out = nullptr;      // y, dx or dw
  float* db = nullptr;      // null: not wanted
  bool accumulate_w = false, accumulate_b = false;
  // For a case with pooling, shaped like its y: which of the four positions of its pool window each
  // output is from (written by forward unless null), 255 where none gets a gradient.
  uint8_t* argmax = nullptr;
  int8_t* out_bytes = nullptr;  // Int8Gemm: also, or instead of out, if the case has y_bytes
  const void* added = nullptr;  // if the case has a sum: the tensor to add before its ReLU, like y
  DropoutMask dropout = {};     // after forward
  float gradient_factor = 1;    // of dy
};

// False with the reason on cards that lack the instructions of these kernels (GpuCard).
bool has_async_mma(const Context& context, std::string& reason);
// False with the reason when products for 16-bit numbers do not support the case, or (fits_products)
// those for no type do: rows in another order, more than two spatial axes, an odd number of channels.
bool supports_products(const ConvCase& c, std::string& reason);
bool fits_products(const ConvCase& c, std::string& reason);

// Made for one case and call, not both_gradients. run() may be given y if the case needs the ReLU's
// gradient.
class ConvProduct {
 public:
  virtual ~ConvProduct() = default;
  virtual size_t choice_count() const = 0;  // 0: the call is not supported
  virtual std::string choice_name(size_t choice) const = 0;
  virtual bool takes_sum() const { return false; }  // run() may be given `added`
  virtual bool takes_y_and_db() const { return true; }
  // See LinearKernelFeatures::atomic_wgrad.
  virtual bool adds() const { return false; }
  void take(size_t choice) { choice_ = choice; }
  void run(Context& context, const ProductTensors& tensors) const {
    launch(context, tensors, choice_);
  }
  // Takes the choice that the tuning cache has under the key. True also if nothing may be timed:
  // then it keeps the default.
  bool take_known(Context& context, const std::string& key);
  // Takes the choice for which time(best so far), in milliseconds, returns least, or another
  // process's answer. Ends early if some choices of all kinds are clearly slower than to_beat, in
  // milliseconds.
  void tune(Context& context, const std::string& key, const std::function<double(double)>& time,
            double to_beat = 1e30);

 protected:
  virtual void launch(Context& context, const ProductTensors& tensors, size_t choice) const = 0;

 private:
  bool take_named(const std::optional<std::string>& name);

  size_t choice_ = 0;
};

}  // namespace crema
