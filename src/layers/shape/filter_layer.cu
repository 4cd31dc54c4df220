// Filter: keeps the items of a batch that the last bottom, the selector, chooses.
//   y_i = the items n of x_i with selector[n] != 0, in their order
// Shapes: bottoms x_i (N, ...), the selector (N) or (N, 1, ...); a top y_i (M, ...) for each x_i,
// where M is how many items the pass's selector chooses, 0 to N.
// Parameters: none.
// Gradient: dx_i = dy_i for the items kept, 0 for the others; none to the selector.
#include "kernels/pointwise/pointwise.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"

namespace crema {
namespace {

template <typename T>
struct PackRows {
  const T* x;
  const int32_t* positions;  // position of each item in y; -1: dropped
  T* y;
  int64_t columns;
  CREMA_HD void operator()(int64_t row, int64_t column) const {
    if (positions[row] >= 0) y[positions[row] * columns + column] = x[row * columns + column];
  }
};

template <typename T>
struct SpreadRows {
  const T* dy;
  const int32_t* positions;
  T* dx;
  int64_t columns;
  CREMA_HD void operator()(int64_t row, int64_t column) const {
    dx[row * columns + column] =
        positions[row] >= 0 ? dy[positions[row] * columns + column] : static_cast<T>(Compute<T>(0));
  }
};

class FilterLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {
      .kind = LayerKind::shape, .keeps_channels = true, .copies = true};

 private:
  Arity bottoms() const override { return {2, -1}; }
  Arity tops() const override { return {1, -1}; }
  int items() const { return message().bottom_size() - 1; }
  bool differentiable(int bottom) const override { return bottom >= 0 && bottom < items(); }
  LayerTraits traits() const override {
    return {.dynamic = true,
            .order_rule = OrderRule::any,
            .half_rule = HalfRule::follows,
            .reads = {false, false}};
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    require(message().top_size() == items(), "there are ", items(),
            " bottoms and a selector after them, but ", message().top_size(),
            " tops: give one top for each bottom but the last");
    const Shape& selector = bottoms.back();
    require(selector.axes() >= 1 && selector.count(1) == 1, "the last bottom, the selector, is ",
            selector.brief(), ", but must have one value for each item: N, or Nx1x1x1");
    Inference inference;
    for (int i = 0; i < items(); ++i) {
      require(bottoms[i].axes() >= 1 && bottoms[i][0] == selector[0], "bottom ", i, " is ",
              bottoms[i].brief(), ", but the selector has ", selector[0],
              " values: it needs one for each item of the batch");
      inference.tops.push_back(bottoms[i]);
    }
    inference.saved = {{Shape{selector[0]}, DType::i32}};
    return inference;
  }

  void forward(Context& context, const Forward& pass) const override {
    const std::vector<float> selector = to_floats(context, pass.bottom.back());
    std::vector<int32_t> positions;
    int32_t chosen = 0;
    for (const float value : selector) positions.push_back(value != 0 ? chosen++ : -1);
    const Tensor& on_device = pass.saved[0];
    copy_bytes(context, on_device.raw(), on_device.device(), positions.data(), Device::cpu,
               on_device.bytes());
    std::vector<Shape>& tops = state_of<DynamicTops>(pass).tops;
    tops.clear();
    for (int i = 0; i < items(); ++i) {
      const Tensor &x = pass.bottom[i], &y = pass.top[i];
      tops.push_back(y.shape());
      tops.back()[0] = chosen;
      const int64_t rows = x.shape()[0], columns = x.shape().count(1);
      on_real(x, [&]<typename T>() {
        parallel_rows(context, rows, columns,
                      PackRows<T>{x.data<T>(), on_device.data<int32_t>(), y.data<T>(), columns});
      });
    }
  }

  void backward(Context& context, const Backward& pass) const override {
    for (int i = 0; i < items(); ++i) {
      const Tensor &dx = pass.bottom_diff[i], &dy = pass.top_diff[i];
      if (!dx) continue;
      if (!dy) {  // that top has no gradient
        zero(context, dx);
        continue;
      }
      const int64_t rows = dx.shape()[0], columns = dx.shape().count(1);
      on_real(dx, [&]<typename T>() {
        parallel_rows(
            context, rows, columns,
            SpreadRows<T>{dy.data<T>(), pass.saved[0].data<int32_t>(), dx.data<T>(), columns});
      });
    }
  }
};

}  // namespace
REGISTER_LAYER(Filter, FilterLayer);
}  // namespace crema
