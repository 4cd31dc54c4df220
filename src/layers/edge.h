// Edge: what may pass along an edge of the graph in addition to a blob and its gradient, so that a
// layer's own pass over memory replaces another one. An edge leads from top 0 of its writer to a
// bottom of its reader. The same struct says what a layer can do (LayerHooks::top_edge,
// bottom_edge), what the plan requests of it (Preparation), and what its kernels will do
// (Prepared).
#pragma once

#include <optional>
#include <vector>

#include "kernels/pointwise/quantize.h"
#include "tensor/tensor.h"

namespace crema {

struct Edge {
  // The blob is the output of a ReLU without negative slope, and the reader's backward takes its
  // gradient through that ReLU: zero where the blob is not positive, multiplied by relu_factor
  // elsewhere (dropout after the ReLU leaves zeros just as the ReLU does). The writer's backward
  // skips the ReLU once all readers do so.
  bool relu = false;
  float relu_factor = 1;
  bool any_relu_factor = false;  // what a reader can do: also with a factor other than 1
  // The writer's forward computes per-channel sums of the blob and of its squares for the reader's
  // forward. Only where results need not be bitwise reproducible.
  bool statistics = false;
  // The blob is relu(x * scale + shift) per channel of the writer's bottom 0, and the reader's
  // forward takes scale, shift and that x instead: the blob need not be written.
  bool affine = false;
  bool affine_gradient = false;  // needs affine: the reader's backward does so, too
  // The reader's forward takes the blob rounded to these integers of 8 bits, which the writer's forward
  // writes. only_rounded: all readers do so, and the blob need not be written.
  std::optional<QuantizedValues> rounded = {};
  bool only_rounded = false;
  // The maximum number of parts of the blob's gradient, which the writer's backward adds as it
  // reads them.
  int gradient_parts = 1;
};

// The tensors that pass along an edge; empty if they do not.
struct EdgeTensors {
  Tensor statistics;  // (2, C) float32: sums of values, sums of squares
  Tensor affine;      // (2, C) float16: scale, shift
  Tensor rounded;     // like the blob, u8: the low bytes of integers
  // Further parts of the gradient, in addition to top_diff[0]. Unlike it they must not be
  // overwritten.
  std::vector<Tensor> gradient_parts;
};

}  // namespace crema
