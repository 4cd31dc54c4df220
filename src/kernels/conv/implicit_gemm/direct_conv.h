// Direct convolution: products (product.h) for images of few channels. A thread block
// copies some rows of an image to shared memory once, each pixel's channels padded to a multiple of
// 8, and reads the fragments of every tap from there. For such images, gathering each tap from
// global memory, as implicit GEMM does, takes more instructions than the products. Only files of a
// CUDA build include it.
#pragma once

#include "kernels/conv/conv_call.h"
#include "kernels/conv/implicit_gemm/product.h"

namespace crema {

struct DirectConvGrid;
struct DirectConvParams;

// Supports no groups, images of few positions, strided dgrad, nor rows too large for shared memory.
class DirectConv final : public ConvProduct {
 public:
  DirectConv(Context& context, const ConvCase& c, ConvCall call);
  size_t choice_count() const override { return choices_.size(); }
  std::string choice_name(size_t choice) const override;
  bool adds() const override { return adds_; }

  // A tiling of the work.
  struct Choice {
    int strip_rows = 0;     // rows of positions that a block computes at a time
    int shape = 0;          // index of a warp's tiling in 16 x 8 results: see shapes()
    int column_blocks = 1;  // blocks along the result's columns
    int slices = 1;         // of the reduction, each by its own warps; not for wgrad
  };
  // Tiles of one warp: along 16 rows and along 8 columns.
  struct WarpShape {
    int rows, columns;
  };
  static constexpr int kShapes = 3;
  static constexpr WarpShape shapes(ConvCall call, int shape) {
    constexpr WarpShape positions[kShapes] = {{1, 4}, {2, 4}, {2, 8}};
    constexpr WarpShape weights[kShapes] = {{2, 4}, {4, 4}, {2, 8}};
    return call == ConvCall::wgrad ? weights[shape] : positions[shape];
  }

 private:
  DirectConvParams params(const Choice& choice) const;
  DirectConvGrid grid(const DirectConvParams& n, const Choice& choice) const;
  bool leaves_room() const;
  void add_choices();
  void add_slices(Choice choice);
  void launch(Context& context, const ProductTensors& tensors, size_t choice) const override;

  ConvCase c_;
  ConvCall call_;
  bool with_relu_y_, adds_ = false;
  int processors_ = 0;
  // Bytes of shared memory that a block may have, nearly all of a multiprocessor's; those of them
  // that may be dynamic.
  int64_t shared_bytes_ = 0, shared_limit_ = 0;
  int64_t cluster_ = 1;
  std::vector<Choice> choices_;
};

}  // namespace crema
