// im2col: the input patches of a convolution's output positions, laid out as a matrix; and col2im,
// where overlapping patches are added up. CPU, one image and one group at a time, one thread. T:
// float or double.
#pragma once

#include "kernels/conv/conv_geometry.h"

namespace crema {

// The implementation "im2col" on a GPU, for many images at once; null, with the reason, for cases
// that it does not take. limit: of the workspace in bytes, unless one image needs more.
std::unique_ptr<LinearKernel> make_conv_im2col_batched(const ConvCase& c, std::string& reason,
                                                       size_t limit = size_t{256} << 20);

class Patches {
 public:
  Patches(const ConvGeometry& g, Order order);

  // A matrix: its rows are patches (channels-last) or its columns are (row-major).
  template <typename T>
  struct View {
    T* data;
    int64_t row;  // elements from one row to the next
  };

  // Elements in one patch.
  int64_t row() const { return g_.in_channels * g_.taps; }
  // False for 1x1 filters of stride 1 without padding: the image itself is the matrix.
  bool needed() const { return needed_; }

  // The patches of `points` output positions from `first` on, in `patches` unless the image itself
  // can be used.
  template <typename T>
  View<T> gather(T* image, int64_t group, int64_t first, int64_t points, T* patches) const;
  // Where the gradient of these patches is written: `patches`, or the image itself.
  template <typename T>
  View<T> goal(T* image, int64_t group, int64_t first, int64_t points, T* patches) const;
  // Adds the patches to the image (col2im).
  template <typename T>
  void scatter(const T* patches, int64_t group, int64_t first, int64_t points, T* image) const;

 private:
  ConvGeometry g_;
  bool last_, needed_;
};

}  // namespace crema
