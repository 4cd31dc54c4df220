// Matrix products on tensor cores whose operand `a` or `b` is gathered from an image on the way:
// convolution and fully connected layers for nets whose kernels are small, where a library's extra
// steps (padding channels, widening results, bias gradients) cost more than the product. 16-bit
// storage, float sums, channels-last. Only files of a CUDA build include it.
//   forward  y[p,o] = relu(b[o] + sum over k of x[p,k] w[o,k])     p: a place of y
//   data     dx[q,c] = sum over (k, o) of g[q,(k,o)] w[o,k,c]      q: a place of x
//   weights  dw[o,k] = sum over p of g[p,o] x[p,k], db[o] = sum over p of g[p,o]
// with k = (tap, channel), x[p,k] the element of x under that tap of the window at p, and g = dy,
// through the ReLU where y is given. Sums are added in a fixed order, but for those of dw and db
// where adds(). Where windows are single
// pixels, as in fully connected layers, all operands are plain matrices, which have kernels of
// their own (small_gemm_gpu.cu); else tune() also times the kernels that read windows from shared
// memory (direct_conv.h).
#pragma once

#include "device/gpu.h"
#include "kernels/conv/conv.h"
#include "kernels/core/dropout.h"

namespace crema {

enum class GatherRole { forward, data, weights };

// What a call reads and writes; which of them depends on the role. Pointers on the GPU; x, w, y,
// dy, dx, b in 16 bits, dw and db in float32.
struct GatherTensors {
  const void *x = nullptr, *w = nullptr, *b = nullptr, *dy = nullptr;
  const void* y = nullptr;  // of the ReLU whose gradient is to be taken first; null: none
  void* out = nullptr;      // y, dx or dw
  float* db = nullptr;      // null: not wanted
  bool accumulate_w = false, accumulate_b = false;
  // Of a case with pooling, like y of that: which of its four places each output kept (written by
  // forward unless null), 255 where none gets a gradient.
  uint8_t* kept = nullptr;
  DropoutMask dropout = {};  // at forward's end; gradients are multiplied by its factor
};

// False with the reason on cards older than these kernels' instructions.
bool has_tensor_cores(const Context& context, std::string& reason);

class WindowProduct;

// Made for one case and role.
class GatherProduct {
 public:
  // False with the reason when the kernels cannot serve the case: other types, more than two
  // spatial axes, an odd number of channels.
  static bool serves(const ConvCase& c, std::string& reason);
  // with_sign: run() will be given y.
  GatherProduct(Context& context, const ConvCase& c, GatherRole role, bool with_sign);
  ~GatherProduct();
  // Takes what the tuning cache says, else times shapes of blocks on scratch memory, where it is
  // given.
  void tune(Context& context, const GatherTensors& scratch);
  void run(Context& context, const GatherTensors& tensors) const;
  // See WeightedSum::adds_weights().
  bool adds() const;
  // For tests: all ways to run it, and taking one.
  size_t choice_count() const { return choices_.size(); }
  void take(size_t choice) { choice_ = choices_[choice]; }
  std::string choice_name() const { return text_of(choice_); }
  // What this product is, for the tuning cache.
  std::string key() const;

 private:
  // A shape of blocks, the number of pieces that the summed axis is cut into, and how many of those
  // are added up in a cluster of blocks; or one of the windows' choices.
  struct Choice {
    int shape = 0, pieces = 1, cluster = 1;
    int window = -1;
  };
  void add_choices();
  Choice untimed() const;
  int64_t blocks_of(const Choice& choice) const;
  std::string text_of(const Choice& choice) const;
  void launch(Context& context, const GatherTensors& tensors, const Choice& choice) const;

  ConvCase c_;
  GatherRole role_;
  bool with_sign_, plain_, clusters_ = false;
  int processors_ = 0, room_ = 0;   // room: bytes of shared memory for a block
  int64_t rows_, columns_, depth_;  // of the product, for one group
  Tensor taps_;                     // GatherTap of implicit_gemm.cuh
  std::unique_ptr<WindowProduct> windows_;
  std::vector<Choice> choices_;
  Choice choice_;
};

}  // namespace crema
