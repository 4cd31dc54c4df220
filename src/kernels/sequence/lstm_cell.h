// One LSTM cell and its gradient.
//   i, f, o = sigmoid, g = tanh of the gates' sums;  c = go_on f c_before + i g;  h = o tanh(c)
#pragma once

#include "kernels/pointwise/pointwise_math.h"

namespace crema {

template <typename T>
struct LstmGradient {
  T i, f, o, g;  // activations of the gates
  T c_before;
};

template <typename T>
struct LstmCell {
  T i, f, o, g;
  T go_on, c_before;
  T c, squashed;  // squashed: tanh(c)

  // sums: the preactivation of gate i; those of f, o and g follow, each `hidden` further. go_on: 0
  // where a sequence begins, which discards c_before whatever its value.
  CREMA_HD LstmCell(const T* sums, int64_t hidden, T c_before_, T go_on_)
      : i(sigmoid_of(sums[0])),
        f(sigmoid_of(sums[hidden])),
        o(sigmoid_of(sums[2 * hidden])),
        g(tanh_of(sums[3 * hidden])),
        go_on(go_on_),
        c_before(go_on_ == 0 ? T(0) : c_before_),
        c(go_on * f * c_before + i * g),
        squashed(tanh_of(c)) {}

  CREMA_HD T h() const { return o * squashed; }

  CREMA_HD LstmGradient<T> gradient(T dh, T dc_after) const {
    const T dc = dc_after + dh * o * (1 - squashed * squashed);
    return {dc * g * i * (1 - i), dc * c_before * go_on * f * (1 - f), dh * squashed * o * (1 - o),
            dc * i * (1 - g * g), dc * go_on * f};
  }
};

}  // namespace crema
