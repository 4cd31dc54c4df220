// Implicit GEMM: matrix products on tensor cores whose operand `a` or `b` is gathered from an image
// as it is loaded. For convolutions and fully connected layers of nets whose kernels are small,
// where a library's extra steps (padding channels, widening results, bias gradients) cost more than
// the product. 16-bit storage, float accumulation, channels-last. Only files of a CUDA build
// include it.
//   fprop  y[p,o] = relu(b[o] + sum over k of x[p,k] w[o,k])     p: a position of y
//   dgrad  dx[q,c] = sum over (k, o) of g[q,(k,o)] w[o,k,c]      q: a position of x
//   wgrad  dw[o,k] = sum over p of g[p,o] x[p,k], db[o] = sum over p of g[p,o]
// with k = (tap, channel), x[p,k] the element of x under that tap of the window at p, and g = dy,
// through the ReLU if y is given. Sums are added in a fixed order, except those of dw and db if
// adds(). With windows of a single pixel, as in fully connected layers, all operands are plain
// matrices, which have their own kernels (small_gemm_gpu.cu); otherwise tune() also benchmarks the
// kernels that read windows from shared memory (direct_conv.h).
#pragma once

#include "device/gpu.h"
#include "kernels/conv/conv.h"
#include "kernels/conv/conv_call.h"
#include "kernels/pointwise/dropout.h"

namespace crema {

// The operands of a call; which of them are used depends on the call. Pointers on the GPU; x,
// w, y, dy, dx, b in 16 bits, dw and db in float32.
struct ImplicitGemmTensors {
  const void *x = nullptr, *w = nullptr, *b = nullptr, *dy = nullptr;
  const void* y = nullptr;  // of the ReLU whose gradient is applied first; null: none
  void* out = nullptr;      // y, dx or dw
  float* db = nullptr;      // null: not wanted
  bool accumulate_w = false, accumulate_b = false;
  // For a case with pooling, shaped like its y: which of the four positions of its pool window each
  // output is from (written by forward unless null), 255 where none gets a gradient.
  uint8_t* argmax = nullptr;
  DropoutMask dropout = {};   // after forward
  float gradient_factor = 1;  // of dy
};

// False with the reason on cards that lack the instructions of these kernels (GpuCard).
bool has_async_mma(const Context& context, std::string& reason);

class DirectConv;

// Made for one case and call.
class ImplicitGemm {
 public:
  // False with the reason when the kernels do not support the case: other types, more than two
  // spatial axes, an odd number of channels.
  static bool supports(const ConvCase& c, std::string& reason);
  // call: not both_gradients. with_relu_y: run() will be given y.
  ImplicitGemm(Context& context, const ConvCase& c, ConvCall call, bool with_relu_y);
  ~ImplicitGemm();
  // Takes the choice from the tuning cache; else benchmarks all choices on scratch memory, if it is
  // given.
  void tune(Context& context, const ImplicitGemmTensors& scratch);
  void run(Context& context, const ImplicitGemmTensors& tensors) const;
  // See LinearKernelFeatures::atomic_wgrad.
  bool adds() const;
  // For tests: the number of choices, and selecting one.
  size_t choice_count() const { return choices_.size(); }
  void take(size_t choice) { choice_ = choices_[choice]; }
  std::string choice_name() const { return text_of(choice_); }
  // The key of this product in the tuning cache.
  std::string key() const;

 private:
  // A tile shape, the number of pieces of split-K, and how many of them a cluster of blocks
  // reduces; or, with direct >= 0, an index into the direct convolution's choices.
  struct Choice {
    int shape = 0, pieces = 1, cluster = 1;
    int direct = -1;
  };
  void add_choices();
  Choice untimed() const;
  int64_t blocks_of(const Choice& choice) const;
  std::string text_of(const Choice& choice) const;
  void launch(Context& context, const ImplicitGemmTensors& tensors, const Choice& choice) const;

  ConvCase c_;
  ConvCall call_;
  bool with_relu_y_, is_matrix_product_, clusters_ = false;
  int processors_ = 0, shared_limit_ = 0;  // shared_limit_: bytes of shared memory for a block
  int64_t rows_, columns_, depth_;         // of the product (M, N, K), for one group
  Tensor taps_;                            // FilterTap of implicit_gemm.cuh
  std::unique_ptr<DirectConv> direct_conv_;
  std::vector<Choice> choices_;
  Choice choice_;
};

}  // namespace crema
