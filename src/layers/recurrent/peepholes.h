// Peepholes: the weights by which the gates i, f and o of a ConvLSTM see its cell state. For .cu
// files only, like kernels/pointwise/pointwise.h.
#pragma once

#include "kernels/pointwise/pointwise.h"

namespace crema {

constexpr int kPeepholes = 3;  // of the gates i, f, o, g all but g

// Index of the weight for an element of the state of all sequences.
struct PeepholeIndices {
  int64_t count = 1, inner = 1;
  CREMA_HD int64_t operator()(int64_t at) const { return at / inner % count; }
};

template <typename T>
struct Peepholes {
  static constexpr int64_t kGates = 4;
  const T *i, *f, *o;  // null: none
  PeepholeIndices positions;
};

template <typename T>
struct AddToGates {
  int64_t hidden;
  bool from_inputs;
  const T *of_hidden, *fixed, *cells;  // fixed: may be null
  Peepholes<T> w;
  T* sums;
  CREMA_HD void operator()(int64_t row, int64_t d) const {
    const int64_t at = row * hidden + d, gate = row % Peepholes<T>::kGates;
    T sum = of_hidden[at];
    if (from_inputs) sum += sums[at];
    if (fixed) sum += fixed[at];
    if (w.i && gate < kPeepholes) {
      const int64_t cell = row / Peepholes<T>::kGates * hidden + d;
      sum += (gate == 0 ? w.i : gate == 1 ? w.f : w.o)[w.positions(cell)] * cells[cell];
    }
    sums[at] = sum;
  }
};

template <typename T>
struct AddToCells {
  int64_t hidden;
  const T* diff;
  Peepholes<T> w;
  T* dc;
  CREMA_HD void operator()(int64_t n, int64_t d) const {
    const int64_t at = n * hidden + d, position = w.positions(at);
    const T* of = diff + n * Peepholes<T>::kGates * hidden + d;
    dc[at] += w.i[position] * of[0] + w.f[position] * of[hidden] + w.o[position] * of[2 * hidden];
  }
};

// Gradient terms of one gate's weights, over all steps.
struct PeepholeTerm {
  const void *diff, *cells;  // diff: of that gate at the first step
  int64_t hidden;
  PeepholeIndices positions;
  template <typename T>
  CREMA_HD T operator()(int64_t k, int64_t row, int64_t column) const {
    const int64_t at = (row * positions.count + k) * positions.inner + column;
    return static_cast<const T*>(cells)[at] *
           static_cast<const T*>(diff)[at / hidden * Peepholes<T>::kGates * hidden + at % hidden];
  }
};

}  // namespace crema
