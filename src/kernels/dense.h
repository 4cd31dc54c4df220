// A fully connected layer: y = relu(x w' + b), and its gradients.
// Shapes: x (rows, inputs), w (outputs, inputs) or (inputs, outputs) when transposed, b (outputs),
// y (rows, outputs).
#pragma once

#include <memory>

#include "kernels/bias.h"
#include "kernels/implementation.h"
#include "tensor/precision.h"
#include "tensor/tensor.h"

namespace crema {

struct DenseCase {
  int64_t rows = 0, inputs = 0, outputs = 0;
  bool transposed = false, bias = false;
  Relu relu;
  bool backward_data = false, backward_weights = false;  // calls that will be made
  DType dtype = DType::f32;  // of x, w, b and y; dw and db are float32 when that is a 16-bit type
  Precision precision = Precision::fp32;
};

class Dense {
 public:
  virtual ~Dense() = default;
  virtual size_t workspace() const { return 0; }
  virtual void forward(Context& context, const Tensor& x, const Tensor& w, const Tensor& b,
                       const Tensor& y, const Tensor& workspace) = 0;
  // dy is the gradient before the ReLU: relu_gradient() comes first.
  virtual void backward_data(Context& context, const Tensor& dy, const Tensor& w, const Tensor& dx,
                             const Tensor& workspace) = 0;
  virtual void backward_weights(Context& context, const Tensor& x, const Tensor& dy,
                                const Tensor& dw, bool accumulate, const Tensor& workspace) = 0;
};

// Chooses from cublas (GPU) and gemm (anything that gemm() takes).
std::unique_ptr<Dense> make_dense(Context& context, const DenseCase& c);

// Its implementations.
std::unique_ptr<Dense> make_dense_cublas(Context& context, const DenseCase& c, std::string& reason);
std::unique_ptr<Dense> make_dense_gemm(Context& context, const DenseCase& c, std::string& reason);

}  // namespace crema
