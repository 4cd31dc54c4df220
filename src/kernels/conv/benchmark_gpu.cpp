#include <algorithm>

#include "device/gpu.h"
#include "device/memory.h"
#include "kernels/conv/benchmark.h"
#include "kernels/pointwise/bias.h"
#include "tensor/on.h"

namespace crema {
namespace {

constexpr DropoutMask kHalf{{}, 1u << 31, 2};

}  // namespace

Benchmark::Benchmark(Context& context, const ConvCase& c, const Format& weights, size_t workspace)
    : context_(context),
      c_(c),
      x_(context, c.x, c.dtype, {Order::channels_last, nullptr, c.x_channels}),
      w_(context, c.w, c.dtype, weights),
      b_(context, Shape{c.w[0]}, c.dtype),
      y_(context, c.y, c.dtype, Format::channels_last()),
      dy_(context, c.y, c.dtype, Format::channels_last()),
      dw_(context, c.w, DType::f32, weights),
      db_(context, Shape{c.w[0]}, DType::f32),
      sums_(context, Shape{2, c.w[0]}, DType::f32),
      workspace_(context, Shape{static_cast<int64_t>(workspace)}, DType::u8) {
  // Small nonzero values: see Tuning::scratch.
  for (const Tensor* tensor : {&x_, &w_, &b_, &y_, &dy_}) {
    check_cuda(cudaMemsetAsync(tensor->raw(), 0x23, tensor->bytes(), context.gpu().stream),
               "filling memory");
  }
}

bool Benchmark::fits(Context& context, const ConvCase& c, size_t workspace) {
  const auto count = static_cast<size_t>(c.x.count() / c.x[1] * std::max(c.x[1], c.x_channels) +
                                         2 * c.y.count() + 4 * c.w.count());
  return free_memory(context) >= size_of(c.dtype) * count + workspace + (size_t{16} << 20);
}

double Benchmark::time(const std::function<void()>& work, double best) const {
  return context_.gpu().tuning.time_repeated(context_, work, best);
}

OutputGradient Benchmark::gradient_for(const LinearKernel& kernel) const {
  return kernel.features().relu_and_bias_gradient() && c_.needs_relu_gradient()
             ? OutputGradient(dy_, y_)
             : OutputGradient(dy_);
}

double Benchmark::fprop(LinearKernel& kernel, double best) const {
  const LinearKernelFeatures features = kernel.features();
  return time(
      [&] {
        if (features.forward_statistics) {
          kernel.forward_with_statistics(context_, x_, Tensor(), w_, y_, sums_, workspace_);
        } else if (c_.sum) {
          kernel.forward_with_sum(context_, x_, w_, bias(), dy_, c_.sum_relu, y_, workspace_);
        } else if (c_.dropout && features.dropout) {
          kernel.forward_with_dropout(context_, x_, w_, bias(), y_, kHalf, workspace_);
        } else {
          kernel.forward(context_, x_, w_, bias(), y_, workspace_);
        }
      },
      best);
}

double Benchmark::dgrad(LinearKernel& kernel, double best) const {
  const OutputGradient g = gradient_for(kernel);
  return time([&] { kernel.backward_data(context_, g, w_, x_, workspace_); }, best);
}

double Benchmark::wgrad(LinearKernel& kernel, double best) const {
  const LinearKernelFeatures features = kernel.features();
  const bool fused = features.relu_and_bias_gradient();
  const OutputGradient g = gradient_for(kernel);
  const Tensor db = fused && c_.bias ? db_ : Tensor();
  // Among kernels that fuse, some may only add: they are compared doing the same.
  const bool add = features.atomic_wgrad || (fused && !context_.repeatable);
  return time([&] { kernel.backward_weights(context_, x_, g, dw_, db, add, add, workspace_); },
              best);
}

double Benchmark::both_gradients(LinearKernel& kernel, double best) const {
  // The call reads x_, so dx is a tensor of its own, as in training, where y_, which the call does
  // not read, has its shape. Else x_ is overwritten: the values do not matter.
  const Tensor& dx = c_.y == c_.x ? y_ : x_;
  const bool add = kernel.features().atomic_wgrad;
  return time(
      [&] { kernel.backward_both(context_, x_, dy_, w_, dx, dw_, Tensor(), add, add, workspace_); },
      best);
}

double Benchmark::dropout_alone() const {
  return time([&] { dropout(context_, kHalf, y_, y_); });
}

double Benchmark::statistics_alone() const {
  return time([&] {
    on_real(y_, [&]<typename T>() {
      bias_gradient(context_, c_.y.count() / c_.y[1], c_.y[1], 1, y_.data<T>(),
                    db_.data<Compute<T>>(), false);
    });
  });
}

double Benchmark::relu_and_bias_alone() const {
  return time([&] {
    on_real(dy_, [&]<typename T>() {
      relu_and_bias_gradient(context_, c_.y.count() / c_.y[1], c_.y[1], 1,
                             c_.needs_relu_gradient() ? y_.data<T>() : nullptr, {}, dy_.data<T>(),
                             c_.bias ? db_.data<Compute<T>>() : nullptr, false);
    });
  });
}

}  // namespace crema
