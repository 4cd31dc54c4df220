// How the CPU's softmax walks over positions: row by row if there are many classes, otherwise in
// blocks of adjacent positions, vectorized over them.
#pragma once

#include <algorithm>

#include "base/ceil_div.h"
#include "kernels/softmax/softmax.h"

namespace crema {

constexpr int64_t kSoftmaxBlock = 64;  // positions per block; fewest classes taken row by row

// Adjacent positions.
struct SoftmaxBlock {
  int64_t first;  // among all positions
  int64_t at;     // offset of its first element
  int64_t count;
};

inline bool softmax_by_rows(const SoftmaxView& view) {
  return view.inner == 1 && view.classes >= kSoftmaxBlock;
}

// Calls work(block) for every block, on all threads.
template <typename Work>
void over_softmax_blocks(const SoftmaxView& view, const Work& work) {
  // Where inner is 1, the positions of all images are one long run. In row-by-row mode a block is
  // one position.
  const bool one_run = view.inner == 1;
  const int64_t outer = one_run ? 1 : view.outer, inner = one_run ? view.outer : view.inner;
  const int64_t size = softmax_by_rows(view) ? 1 : kSoftmaxBlock, blocks = ceil_div(inner, size);
#pragma omp parallel for schedule(static) if (view.positions() * view.classes > 1 << 12)
  for (int64_t task = 0; task < outer * blocks; ++task) {
    const int64_t o = task / blocks, first = task % blocks * size;
    work(SoftmaxBlock{o * inner + first,
                      o * inner * view.classes + first * (one_run ? view.classes : 1),
                      std::min(size, inner - first)});
  }
}

// A block as a matrix of classes x positions: where inner is 1 a transposed copy, otherwise the
// blob itself.
template <typename T>
class SoftmaxTile {
 public:
  explicit SoftmaxTile(const SoftmaxView& view)
      : classes_(view.classes),
        transposed_(view.inner == 1),
        stride_(transposed_ ? kSoftmaxBlock : view.inner) {}

  int64_t stride() const { return stride_; }
  const T* read(const T* x, int64_t count) {
    if (!transposed_) return x;
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t k = 0; k < classes_; ++k) tile_[k * kSoftmaxBlock + i] = x[i * classes_ + k];
    }
    return tile_;
  }
  // Where to write; finish() then copies it to y if necessary.
  T* write(T* y) { return transposed_ ? tile_ : y; }
  void finish(T* y, int64_t count) const {
    if (!transposed_) return;
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t k = 0; k < classes_; ++k) y[i * classes_ + k] = tile_[k * kSoftmaxBlock + i];
    }
  }

 private:
  int64_t classes_;
  bool transposed_;
  int64_t stride_;
  alignas(64) T tile_[kSoftmaxBlock * kSoftmaxBlock];
};

}  // namespace crema
