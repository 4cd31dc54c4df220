// Unpooling: undoes a pooling. UnPooling is another name for it.
//   MAX, two bottoms  y[n, c, mask[n,c,i]] = x[n,c,i], 0 elsewhere; the second bottom is the
//                     pooling's mask; of several values for one position the last wins
//   MAX, one bottom   y[n, c, h*stride, w*stride] = x[n,c,h,w], 0 elsewhere
//   AVE               each x is spread evenly over its window; overlaps add up
//   TILE              each x is repeated over its window; overlaps add up
// Shapes: x (N, C, H, W), y (N, C, unpool_size, unpool_size), or unpool_h by unpool_w, or without
// them as large as the windows reach, but at least H*stride + 1.
// Parameters: none.
// Gradient: dx[n,c,i] = dy at its position; AVE the mean of dy in its window, TILE the sum.
#include "kernels/pointwise/pointwise.h"
#include "kernels/pool/pool_geometry.h"
#include "kernels/pool/unpool.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"
#include "proto/params/forks_segmentation.pb.h"
#include "tensor/part.h"

namespace crema {
namespace {

// In terms of the pooling that is undone: y is its input and x its output.
template <typename T>
struct SpreadBody {
  PoolGeometry g;
  bool mean;
  const T* x;
  T* y;
  CREMA_HD void operator()(int64_t row, int64_t column) const {
    const int64_t plane = row / g.in[1], h = row % g.in[1];
    Compute<T> sum = 0;
    for (int64_t p = g.output_begin(1, h); p < g.output_end(1, h); ++p) {
      for (int64_t q = g.output_begin(2, column); q < g.output_end(2, column); ++q) {
        const Compute<T> value = x[(plane * g.out[1] + p) * g.out[2] + q];
        sum += mean ? value / static_cast<Compute<T>>(g.divisor(0, p, q)) : value;
      }
    }
    y[row * g.in[2] + column] = sum;
  }
};

template <typename T>
struct CollectBody {
  PoolGeometry g;
  bool mean;
  const T* dy;
  T* dx;
  CREMA_HD void operator()(int64_t row, int64_t column) const {
    const int64_t plane = row / g.out[1], p = row % g.out[1];
    Compute<T> sum = 0;
    for (int64_t h = g.input_begin(1, p); h < g.input_end(1, p); ++h) {
      for (int64_t w = g.input_begin(2, column); w < g.input_end(2, column); ++w)
        sum += Compute<T>(dy[(plane * g.in[1] + h) * g.in[2] + w]);
    }
    dx[row * g.out[2] + column] =
        mean ? sum / static_cast<Compute<T>>(g.divisor(0, p, column)) : sum;
  }
};

class UnpoolingLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::resize, .keeps_channels = true};

 private:
  const UnpoolingParameter& p() const { return params<UnpoolingParameter>(); }
  Arity bottoms() const override { return {1, 2}; }
  bool differentiable(int bottom) const override { return bottom == 0; }
  LayerTraits traits() const override {
    return {.order_rule = order_rule(), .half_rule = HalfRule::follows, .reads = {masked_, false}};
  }
  // Windows are scattered and gathered in row-major order.
  OrderRule order_rule() const {
    return keeps_one() && message().bottom_size() == 2 ? OrderRule::any : OrderRule::row_major;
  }
  bool keeps_one() const { return p().unpool() == UnpoolingParameter::MAX; }
  bool mean() const { return p().unpool() == UnpoolingParameter::AVE; }

  void setup(Context&, const std::vector<Shape>& bottoms) override {
    masked_ = keeps_one() && bottoms.size() == 2;
    window_.method = PoolMethod::average;
    const int64_t kernel[] = {p().has_kernel_h() ? p().kernel_h() : p().kernel_size(),
                              p().has_kernel_w() ? p().kernel_w() : p().kernel_size()};
    const int64_t stride[] = {p().has_stride_h() ? p().stride_h() : p().stride(),
                              p().has_stride_w() ? p().stride_w() : p().stride()};
    require(kernel[0] > 0 && kernel[1] > 0,
            "Unpooling needs kernel_size, or kernel_h and kernel_w, of the pooling it undoes");
    require(stride[0] > 0 && stride[1] > 0, "stride must be at least 1");
    require(p().pad() == 0 && p().pad_h() == 0 && p().pad_w() == 0,
            "Unpooling with padding is not defined: pad must be 0");
    require(p().has_unpool_h() == p().has_unpool_w(),
            "unpool_h and unpool_w must be given together");
    for (int i = 0; i < 2; ++i) {
      reach_[i] = kernel[i];
      // A single value goes to the first pixel of its window.
      window_.kernel[1 + i] = keeps_one() ? 1 : kernel[i];
      window_.stride[1 + i] = stride[i];
    }
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape& x = bottoms[0];
    require(x.axes() == 4, "Unpooling takes images (N, C, H, W), but the bottom is ", x.brief());
    require(!masked_ || bottoms[1] == x, "the mask must have the shape of the first bottom, ",
            x.brief(), ", but is ", bottoms.back().brief());
    Shape y = x;
    for (int i = 0; i < 2; ++i) {
      const int64_t stride = window_.stride[1 + i], last = (x[2 + i] - 1) * stride;
      const int64_t given = !p().has_unpool_h() ? p().unpool_size()
                            : i == 0            ? p().unpool_h()
                                                : p().unpool_w();
      y[2 + i] = given > 0 ? given : std::max(last + reach_[i], last + stride + 1);
      require(masked_ || y[2 + i] > last, "on axis ", 2 + i, " the top has extent ", y[2 + i],
              ", but the last window begins at ", last);
    }
    return {{y}, {}};
  }

  Prepared prepare(Context&, const Preparation& preparation) const override {
    Prepared prepared;
    if (masked_) prepared.workspace = preparation.tops[0].count() * sizeof(int32_t);
    return prepared;
  }

  void forward(Context& context, const Forward& pass) const override {
    const Tensor &x = pass.bottom[0], &y = pass.top[0];
    if (masked_) {
      return unpool(context, x, pass.bottom[1], part_of(pass.workspace, 0, {y.count()}, DType::i32),
                    y);
    }
    on_real(y, [&]<typename T>() {
      parallel_rows(context, y.shape().count(0, 3), y.shape()[3],
                    SpreadBody<T>{{window_, y, x}, mean(), x.data<T>(), y.data<T>()});
    });
  }

  void backward(Context& context, const Backward& pass) const override {
    const Tensor &dx = pass.bottom_diff[0], &dy = pass.top_diff[0];
    if (masked_) return unpool_gradient(context, pass.bottom[1], dy, dx);
    on_real(dx, [&]<typename T>() {
      parallel_rows(context, dx.shape().count(0, 3), dx.shape()[3],
                    CollectBody<T>{{window_, dy, dx}, mean(), dy.data<T>(), dx.data<T>()});
    });
  }

  PoolWindow window_;
  int64_t reach_[2] = {0, 0};  // the windows of the pooling
  bool masked_ = false;
};

}  // namespace
REGISTER_LAYER(Unpooling, UnpoolingLayer);
REGISTER_LAYER(UnPooling, UnpoolingLayer);
}  // namespace crema
