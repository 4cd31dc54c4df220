// The products of implicit_gemm.h for images of few channels: a block of threads takes some rows
// of an image into shared memory once, each pixel's channels padded to multiples of 8, and reads
// the fragments of every tap straight from there. Gathering each tap from memory anew, as the
// products there do, costs such images more instructions than the products. Only files of a CUDA
// build include it.
#pragma once

#include "kernels/conv/implicit_gemm/implicit_gemm.h"

namespace crema {

struct WindowNumbers;

class WindowProduct {
 public:
  // Made for a case that GatherProduct serves, and role. with_sign: run() will be given y.
  WindowProduct(Context& context, const ConvCase& c, GatherRole role, bool with_sign);

  // How the work is divided.
  struct Choice {
    int strip = 0;   // rows of places that a block takes at a time
    int shape = 0;   // tiles of 16 x 8 results a warp computes: see shapes()
    int parts = 1;   // blocks side by side along the result's columns
    int slices = 1;  // of the summed axis, each with warps of its own; not for weights
  };
  // None where the case does not suit: groups, an image of few places, a gradient of the data with
  // strides, too large for shared memory.
  const std::vector<Choice>& choices() const { return choices_; }
  void run(Context& context, const GatherTensors& tensors, const Choice& choice) const;
  // See WeightedSum::adds_weights().
  bool adds() const { return adds_; }

  // Of one warp: tiles along 16 rows and along 8 columns.
  struct WarpShape {
    int rows, columns;
  };
  static constexpr int kShapes = 3;
  static constexpr WarpShape shapes(GatherRole role, int shape) {
    constexpr WarpShape places[kShapes] = {{1, 4}, {2, 4}, {2, 8}};
    constexpr WarpShape weights[kShapes] = {{2, 4}, {4, 4}, {2, 8}};
    return role == GatherRole::weights ? weights[shape] : places[shape];
  }

 private:
  WindowNumbers numbers(const Choice& choice) const;
  bool cells() const;  // forward writes cells of a pooling
  bool leaves_room() const;
  void add_choices();
  void add_slices(Choice choice);

  ConvCase c_;
  GatherRole role_;
  bool with_sign_, adds_ = false;
  int processors_ = 0;
  int64_t shared_bytes_ = 0;  // that a block may have
  int64_t cluster_ = 1;
  std::vector<Choice> choices_;
};

}  // namespace crema
