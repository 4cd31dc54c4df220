// Products whose choices are a tile shape and a number of pieces of split-K. Only files of a CUDA build include
// it.
#pragma once

#include <span>
#include <vector>

#include "kernels/conv/implicit_gemm/implicit_gemm.cuh"

namespace crema {

class SplitProduct : public ConvProduct {
 public:
  size_t choice_count() const override { return choices_.size(); }
  std::string choice_name(size_t choice) const override;

 protected:
  // tiles: the shapes; step: elements along the reduction that a block multiplies at a time. By default the
  // product takes the first choice that gives each multiprocessor a block.
  SplitProduct(Context& context, const ConvCase& c, ConvCall call,
               std::span<const TileExtent> tiles, int step);

  int shape(size_t choice) const { return choices_[choice].shape; }
  // Geometry, split, taps and the GPU's memory for partial sums; the other operands are the kernel's.
  ImplicitGemmParams params(const Gpu& gpu, size_t choice) const;

 private:
  struct Choice {
    int shape = 0, pieces = 1;
  };

  ImplicitGemmGeometry geometry_;
  int step_;
  Tensor taps_;  // FilterTap
  std::vector<Choice> choices_;
};

}  // namespace crema
