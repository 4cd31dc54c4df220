// InnerProduct with its weights as a bottom (NormFace): y = x w' + b, and the gradients of all
// three. float or double, row-major, by gemm.
#pragma once

#include "kernels/gemm/gemm.h"
#include "kernels/pointwise/bias.h"
#include "tensor/on.h"
#include "tensor/tensor.h"

namespace crema {

struct ProductOfBottoms {
  int64_t rows = 0, inputs = 0, outputs = 0;  // x is rows x inputs
  bool transposed = false;                    // w is inputs x outputs, not outputs x inputs
  Precision precision = Precision::fp32;

  // b: empty for none.
  void forward(Context& context, const Tensor& x, const Tensor& w, const Tensor& b,
               const Tensor& y) const {
    on(x, [&]<typename T>() {
      gemm<T>(context,
              Gemm{.transpose_b = !transposed,
                   .m = rows,
                   .n = outputs,
                   .k = inputs,
                   .precision = precision},
              x.data<T>(), w.data<T>(), y.data<T>());
      if (b) add_bias<T>(context, rows, outputs, 1, b.data<T>(), {}, y.data<T>());
    });
  }

  // Empty gradients are not needed. db is added to if `accumulate`.
  void backward(Context& context, const Tensor& x, const Tensor& w, const Tensor& dy,
                const Tensor& dx, const Tensor& dw, const Tensor& db, bool accumulate) const {
    on(dy, [&]<typename T>() {
      const T* slopes = dy.data<T>();
      if (db) bias_gradient<T>(context, rows, outputs, 1, slopes, db.data<T>(), accumulate);
      if (dx) {
        gemm<T>(context,
                Gemm{.transpose_b = transposed,
                     .m = rows,
                     .n = inputs,
                     .k = outputs,
                     .precision = precision},
                slopes, w.data<T>(), dx.data<T>());
      }
      if (!dw) return;
      const T *first = transposed ? x.data<T>() : slopes,
              *second = transposed ? slopes : x.data<T>();
      gemm<T>(context,
              Gemm{.transpose_a = true,
                   .m = transposed ? inputs : outputs,
                   .n = transposed ? outputs : inputs,
                   .k = rows,
                   .precision = precision},
              first, second, dw.data<T>());
    });
  }
};

}  // namespace crema
