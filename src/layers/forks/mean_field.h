// Mean-field inference over the pixels of an image, for MultiStageMeanfield: one iteration and its
// gradient. For .cu files only, like device/parallel.h. Internally pixels are channels-last: the
// classes of a pixel are contiguous.
#pragma once

#include "device/aligned.h"
#include "device/memory.h"
#include "kernels/crf/permutohedral.h"
#include "kernels/gemm/gemm.h"
#include "kernels/pointwise/pointwise.h"
#include "kernels/pointwise/pointwise_math.h"

namespace crema::meanfield {

template <typename T>
struct ToPixels {
  int64_t classes, pixels;
  const T* x;
  T* y;
  CREMA_HD void operator()(int64_t pixel, int64_t k) const {
    y[pixel * classes + k] = x[k * pixels + pixel];
  }
};

template <typename T>
struct FromPixels {
  int64_t classes, pixels;
  const T* x;
  T* y;
  CREMA_HD void operator()(int64_t k, int64_t pixel) const {
    y[k * pixels + pixel] = x[pixel * classes + k];
  }
};

template <typename T>
struct Softmax {
  int64_t classes;
  const T* x;
  T* y;
  CREMA_HD void operator()(int64_t pixel) const {
    const T* from = x + pixel * classes;
    T* to = y + pixel * classes;
    T maximum = from[0], sum = 0;
    for (int64_t k = 1; k < classes; ++k) maximum = from[k] > maximum ? from[k] : maximum;
    for (int64_t k = 0; k < classes; ++k) sum += to[k] = exp_of(from[k] - maximum);
    for (int64_t k = 0; k < classes; ++k) to[k] /= sum;
  }
};

// dx of the softmax with output q; its dy is the sum of `first` and `second`.
template <typename T>
struct SoftmaxGradient {
  int64_t classes;
  const T *q, *first, *second;
  T* dx;
  CREMA_HD void operator()(int64_t pixel) const {
    const int64_t begin = pixel * classes, end = begin + classes;
    T sum = 0;
    for (int64_t i = begin; i < end; ++i) sum += q[i] * (first[i] + second[i]);
    for (int64_t i = begin; i < end; ++i) dx[i] = q[i] * (first[i] + second[i] - sum);
  }
};

template <typename T>
struct AddTo {
  const T* x;
  T* y;
  CREMA_HD void operator()(int64_t i) const { y[i] += x[i]; }
};

struct Ones {
  double* x;
  CREMA_HD void operator()(int64_t i) const { x[i] = 1; }
};

// Normalizes a pixel: 1 / the sum of its weights.
struct ShareOfSum {
  double* sums;
  CREMA_HD void operator()(int64_t i) const { sums[i] = 1 / (sums[i] + 1e-20); }
};

template <typename T>
struct ScalePixels {
  const double* shares;
  int64_t classes;
  T* x;
  CREMA_HD void operator()(int64_t pixel, int64_t k) const {
    x[pixel * classes + k] *= static_cast<T>(shares[pixel]);
  }
};

// Pixel coordinates, and with an image its colours, in standard deviations of the kernel.
template <typename T>
struct PixelFeatures {
  int64_t pixels, width;
  float reach, colour_reach;
  const T* image;  // or null
  float* features;
  CREMA_HD void operator()(int64_t pixel) const {
    float* to = features + pixel * (image ? 5 : 2);
    to[0] = static_cast<float>(pixel % width) / reach;
    to[1] = static_cast<float>(pixel / width) / reach;
    for (int c = 0; image && c < 3; ++c)
      to[2 + c] = static_cast<float>(image[c * pixels + pixel]) / colour_reach;
  }
};

// One of the two filters, normalized from sums to means.
struct MeanFilter {
  Lattice lattice;
  double* shares;  // 1 / sum of weights, per pixel

  template <typename T>
  void scale(Context& context, int64_t classes, T* x) const {
    parallel_rows(context, lattice.points, classes, ScalePixels<T>{shares, classes, x});
  }
  template <typename T>
  void mean(Context& context, const T* x, int64_t classes, T* y, T* scratch) const {
    lattice_filter(context, lattice, x, classes, false, y, scratch);
    scale(context, classes, y);
  }
  // Overwrites dy.
  template <typename T>
  void mean_gradient(Context& context, T* dy, int64_t classes, T* dx, T* scratch) const {
    scale(context, classes, dy);
    lattice_filter(context, lattice, dy, classes, true, dx, scratch);
  }
};

// Divides a buffer into consecutive parts.
struct Parts {
  char* at;
  const char* begin = at;
  template <typename T>
  T* next(size_t count) {
    char* const part = at;
    at += aligned(count * sizeof(T));
    return reinterpret_cast<T*>(part);
  }
  size_t bytes() const { return static_cast<size_t>(at - begin); }
};

// Saved by an iteration for its gradient; (pixels, classes) each.
template <typename T>
struct Iteration {
  T *probabilities, *spatial, *bilateral, *message;
  Iteration(T* memory, int64_t each)
      : probabilities(memory),
        spatial(memory + each),
        bilateral(memory + 2 * each),
        message(memory + 3 * each) {}
};

template <typename T>
struct Matrices {
  T *spatial, *bilateral, *compatibility;  // (classes, classes); gradients: null if not needed
};

template <typename T>
struct MeanField {
  Context& context;
  int64_t classes, pixels;
  MeanFilter spatial, bilateral;
  T* scratch;  // of the filters

  int64_t count() const { return classes * pixels; }

  // y = alpha x op(a) + beta y; x and y are (pixels, classes).
  void apply(const T* a, bool transposed, const T* x, float alpha, float beta, T* y) const {
    Gemm g;
    g.transpose_b = transposed;
    g.m = pixels;
    g.n = g.k = classes;
    g.alpha = alpha;
    g.beta = beta;
    gemm(context, g, x, a, y);
  }
  // c = alpha a^T b + beta c; a and b are (pixels, classes).
  void products(const T* a, const T* b, float alpha, float beta, T* c) const {
    if (!c) return;
    Gemm g;
    g.transpose_a = true;
    g.m = g.n = classes;
    g.k = pixels;
    g.alpha = alpha;
    g.beta = beta;
    gemm(context, g, a, b, c);
  }
  void copy(const T* from, T* to) const {
    copy_bytes(context, to, context.device(), from, context.device(), count() * sizeof(T));
  }

  // Advances y by one iteration.
  void forward(const Matrices<T>& m, const T* scores, T* y, const Iteration<T>& it) const {
    parallel_for(context, pixels, Softmax<T>{classes, y, it.probabilities}, 64);
    spatial.mean(context, it.probabilities, classes, it.spatial, scratch);
    bilateral.mean(context, it.probabilities, classes, it.bilateral, scratch);
    apply(m.spatial, true, it.spatial, 1, 0, it.message);
    apply(m.bilateral, true, it.bilateral, 1, 1, it.message);
    copy(scores, y);
    apply(m.compatibility, true, it.message, -1, 1, y);
  }

  // Turns dy into that of the previous iteration. parts: room for three (pixels, classes).
  void backward(const Matrices<T>& m, const Iteration<T>& it, const Matrices<T>& dm, T* dy,
                T* d_scores, T* parts) const {
    T *d_message = parts, *d_mean = parts + count(), *d_spatial = parts + 2 * count();
    parallel_for(context, count(), AddTo<T>{dy, d_scores});
    products(dy, it.message, -1, 1, dm.compatibility);
    apply(m.compatibility, false, dy, -1, 0, d_message);
    products(d_message, it.spatial, 1, 1, dm.spatial);
    products(d_message, it.bilateral, 1, 1, dm.bilateral);
    apply(m.spatial, false, d_message, 1, 0, d_mean);
    spatial.mean_gradient(context, d_mean, classes, d_spatial, scratch);
    apply(m.bilateral, false, d_message, 1, 0, d_mean);
    bilateral.mean_gradient(context, d_mean, classes, d_message, scratch);
    parallel_for(context, pixels,
                 SoftmaxGradient<T>{classes, it.probabilities, d_spatial, d_message, dy}, 64);
  }
};

}  // namespace crema::meanfield
