// Axpy: scales each channel of each image and adds a blob, as at the end of a
// squeeze-and-excitation block.
//   y[n,c,i] = a[n,c] * x[n,c,i] + b[n,c,i]
// Shapes: bottoms a (N, C) or (N, C, 1, 1), x (N, C, spatial...), b as x; y as x.
// Parameters: none.
// Gradient: da[n,c] = sum over i of dy * x, dx = a[n,c] * dy, db = dy.
#include "kernels/norm/scale.h"
#include "kernels/pointwise/pointwise.h"
#include "layers/layer.h"

namespace crema {
namespace {

// out = a * in + b, `kWidth` columns per thread. kLast: a row is a position, its columns the
// channels.
template <typename T, bool kLast, int kWidth>
struct AxpyBody {
  using P = Pack<T, kWidth>;
  const T *a, *in, *b;  // b null: no sum
  T* out;
  int64_t positions, columns;
  CREMA_HD void operator()(int64_t row, int64_t column) const {
    const int64_t i = row * columns + column * kWidth;
    const int64_t factor = kLast ? row / positions * columns + column * kWidth : row;
    const P x = *reinterpret_cast<const P*>(in + i);
    P y = b ? *reinterpret_cast<const P*>(b + i) : P{};
    for (int k = 0; k < kWidth; ++k)
      y.v[k] = Compute<T>(a[kLast ? factor + k : factor]) * Compute<T>(x.v[k]) + Compute<T>(y.v[k]);
    *reinterpret_cast<P*>(out + i) = y;
  }
};

class AxpyLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::join, .keeps_channels = true};

 private:
  Arity bottoms() const override { return {3, 3}; }
  LayerTraits traits() const override {
    return {.order_rule = OrderRule::any, .half_rule = HalfRule::follows, .reads = {true, false}};
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape &a = bottoms[0], &x = bottoms[1];
    require(x == bottoms[2], "the second and the third bottom must be alike, but they are ",
            x.brief(), " and ", bottoms[2].brief());
    require(x.axes() >= 2 && a.axes() >= 2 && a[0] == x[0] && a[1] == x[1] && a.count(2) == 1,
            "the first bottom needs one factor for each channel of each image, ", x.brief(),
            ", but is ", a.brief());
    return {{x}, {}};
  }

  // The channels of all images, each with its own factor.
  static ChannelView view(const Shape& x, Order order) {
    if (order == Order::channels_last) return {x[0], x.count(2), x[1], 1};
    return {1, 1, x.count(0, 2), x.count(2)};
  }

  Prepared prepare(Context& context, const Preparation& preparation) const override {
    Prepared prepared;
    prepared.workspace =
        scale_workspace(context, view(preparation.bottoms[1], preparation.bottom_orders[1]));
    return prepared;
  }

  void run(Context& context, const Tensor& a, const Tensor& in, const Tensor& b,
           const Tensor& out) const {
    const bool last = in.format().order == Order::channels_last;
    const int64_t positions = in.shape().count(2), columns = last ? in.shape()[1] : positions;
    on_real(in, [&]<typename T>() {
      const auto with = [&]<bool kLast, int kWidth>() {
        parallel_rows(context, in.count() / columns, columns / kWidth,
                      AxpyBody<T, kLast, kWidth>{a.data<T>(), in.data<T>(), b.data<T>(),
                                                 out.data<T>(), positions, columns});
      };
      const bool packs =
          context.device() == Device::gpu && takes_packs<T>(columns, in.raw(), b.raw(), out.raw());
      if (last && packs) return with.template operator()<true, kPackCount<T>>();
      if (last) return with.template operator()<true, 1>();
      if (packs) return with.template operator()<false, kPackCount<T>>();
      with.template operator()<false, 1>();
    });
  }

  void forward(Context& context, const Forward& pass) const override {
    run(context, pass.bottom[0], pass.bottom[1], pass.bottom[2], pass.top[0]);
  }

  void backward(Context& context, const Backward& pass) const override {
    const Tensor& dy = pass.top_diff[0];
    ScaleGradients gradients;
    gradients.d_factor = pass.bottom_diff[0];
    gradients.dx = pass.bottom_diff[1];
    scale_backward(context, view(dy.shape(), dy.format().order), pass.bottom[0], pass.bottom[1], dy,
                   gradients, pass.workspace);
    if (pass.bottom_diff[2]) copy(context, dy, pass.bottom_diff[2]);
  }
};

}  // namespace
REGISTER_LAYER(Axpy, AxpyLayer);
}  // namespace crema
