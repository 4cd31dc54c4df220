// Bias per channel followed by a ReLU, and the gradients of both. y and dy are seen as (outer,
// channels, inner), b and db have a value per channel; none may overlap. Pointers are on the
// context's device. T: float or double, on a GPU also Half and BFloat16; sums are then float.
#pragma once

#include "device/context.h"
#include "tensor/half.h"

namespace crema {

struct Relu {
  bool on = false;
  float slope = 0;  // for negative values
};

// y += b per channel (b may be null), then the ReLU.
template <typename T>
void add_bias(Context& context, int64_t outer, int64_t channels, int64_t inner, const T* b,
              Relu relu, T* y);

// db[c] = (accumulate ? db[c] : 0) + the sum of dy over outer and inner.
template <typename T>
void bias_gradient(Context& context, int64_t outer, int64_t channels, int64_t inner, const T* dy,
                   Compute<T>* db, bool accumulate);

// Factors of a gradient where a ReLU's output is positive (right) and elsewhere (left). right: 1,
// or the factor of a dropout after the ReLU; what that zeroed in y gets `left` (0), too.
struct ReluSlopes {
  float left = 0, right = 1;
};

// dy *= y > 0 ? right : left, for a ReLU whose output is y.
template <typename T>
void relu_gradient(Context& context, int64_t count, const T* y, ReluSlopes slopes, T* dy);

// Both: dy *= y > 0 ? right : left unless y is null, then db as above unless it is null. On a GPU
// in one pass when inner is 1.
template <typename T>
void relu_and_bias_gradient(Context& context, int64_t outer, int64_t channels, int64_t inner,
                            const T* y, ReluSlopes slopes, T* dy, Compute<T>* db, bool accumulate);

// GPU, float and 16 bits: the implementation of that pass.
template <typename T>
void relu_bias_gradient_gpu(Context& context, int64_t outer, int64_t channels, const T* y,
                            ReluSlopes slopes, T* dy, float* db, bool accumulate);

}  // namespace crema
