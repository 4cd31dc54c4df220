#include "kernels/pointwise/prelu.h"

#include "kernels/pointwise/pointwise.h"
#include "kernels/reduce/reduce.h"

namespace crema {
namespace {

// kChannelColumns: the channels are the columns; else every row belongs to one channel.
template <typename T, bool kChannelColumns>
struct PreluBody {
  const T *x, *slopes;
  const T* dy;  // null: out is y, else dx
  T* out;
  int64_t channels, columns;
  CREMA_HD void operator()(int64_t row, int64_t column) const {
    const int64_t i = row * columns + column;
    const T value = x[i], slope = slopes[kChannelColumns ? column : row % channels];
    out[i] = (dy ? dy[i] : value) * (value > 0 ? T(1) : slope);
  }
};

template <typename Real>
struct SlopeTerm {
  const Real *x, *dy;
  int64_t channels, columns;
  template <typename T>
  CREMA_HD T operator()(int64_t channel, int64_t row, int64_t column) const {
    const int64_t i = (row * channels + channel) * columns + column;
    return x[i] > 0 ? T(0) : x[i] * dy[i];
  }
};

void run_prelu(Context& context, const ChannelView& view, const Tensor& slopes, const Tensor& x,
               const Tensor& dy, const Tensor& out) {
  on(x, [&]<typename T>() {
    const auto with = [&]<bool kChannelColumns>() {
      const int64_t rows = kChannelColumns ? view.outer : view.outer * view.channels,
                    columns = kChannelColumns ? view.channels : view.inner;
      parallel_rows(context, rows, columns,
                    PreluBody<T, kChannelColumns>{x.data<T>(), slopes.data<T>(), dy.data<T>(),
                                                  out.data<T>(), view.channels, columns});
    };
    view.inner == 1 ? with.template operator()<true>() : with.template operator()<false>();
  });
}

Refusal prelu_forward_plain(Context& context, const ChannelView& view, const Tensor& slopes,
                            const Tensor& x, const Tensor& y) {
  if (is_half(x.dtype())) return "in 32 and 64 bits only";
  run_prelu(context, view, slopes, x, {}, y);
  return nullptr;
}

Refusal prelu_backward_plain(Context& context, const ChannelView& view, const Tensor& slopes,
                             const Tensor& x, const Tensor& dy, const Tensor& dx,
                             const Tensor& d_slopes, bool accumulate) {
  if (is_half(x.dtype())) return "in 32 and 64 bits only";
  if (d_slopes) {
    on(x, [&]<typename T>() {
      parallel_sum<T>(context, {view.channels, view.outer, view.inner},
                      SlopeTerm<T>{x.data<T>(), dy.data<T>(), view.channels, view.inner},
                      {d_slopes.data<T>(), 1, accumulate});
    });
  }
  if (dx) run_prelu(context, view, slopes, x, dy, dx);
  return nullptr;
}

REGISTER_KERNEL(prelu_forward_kernels, "plain", RunsOn::both, 0, prelu_forward_plain);
REGISTER_KERNEL(prelu_backward_kernels, "plain", RunsOn::both, 0, prelu_backward_plain);

}  // namespace

constinit decltype(prelu_forward_kernels) prelu_forward_kernels("PReLU");
constinit decltype(prelu_backward_kernels) prelu_backward_kernels("the gradient of PReLU");

void prelu_forward(Context& context, const ChannelView& view, const Tensor& slopes, const Tensor& x,
                   const Tensor& y) {
  prelu_forward_kernels.run(context, view, slopes, x, y);
}

void prelu_backward(Context& context, const ChannelView& view, const Tensor& slopes,
                    const Tensor& x, const Tensor& dy, const Tensor& dx, const Tensor& d_slopes,
                    bool accumulate) {
  prelu_backward_kernels.run(context, view, slopes, x, dy, dx, d_slopes, accumulate);
}

}  // namespace crema
