// LSTMUnit: one step of an LSTM after its matrix products.
//   i, f, o = sigmoid of the first, second and third quarter of x, g = tanh of the fourth
//   c = cont f c_before + i g;  h = o tanh(c)
// Shapes: c_before (1, N, H), x (1, N, 4 H), cont (1, N), 0 where a sequence begins, else 1; c and
// h (1, N, H).
// Parameters: none.
// Gradient: with dk = dc + dh o (1 - tanh(c)^2): dc_before = dk cont f, and for x dk g i (1 - i),
// dk c_before cont f (1 - f), dh tanh(c) o (1 - o), dk i (1 - g^2); none for cont.
#include "kernels/pointwise/pointwise.h"
#include "kernels/sequence/lstm_cell.h"
#include "layers/layer.h"

namespace crema {
namespace {

template <typename T>
struct Unit {
  int64_t hidden;
  const T *c_before, *x, *go_on;
  CREMA_HD LstmCell<T> cell(int64_t n, int64_t d) const {
    return LstmCell<T>(x + n * 4 * hidden + d, hidden, c_before[n * hidden + d], go_on[n]);
  }
};

template <typename T>
struct UnitForward {
  Unit<T> unit;
  T *c, *h;
  CREMA_HD void operator()(int64_t n, int64_t d) const {
    const LstmCell<T> cell = unit.cell(n, d);
    c[n * unit.hidden + d] = cell.c;
    h[n * unit.hidden + d] = cell.h();
  }
};

template <typename T>
struct UnitBackward {
  Unit<T> unit;
  const T *dc, *dh;
  T *dc_before, *dx;  // null: not needed
  CREMA_HD void operator()(int64_t n, int64_t d) const {
    const int64_t at = n * unit.hidden + d;
    const LstmGradient<T> gradient = unit.cell(n, d).gradient(dh[at], dc[at]);
    if (dc_before) dc_before[at] = gradient.c_before;
    if (!dx) return;
    T* out = dx + n * 4 * unit.hidden + d;
    out[0] = gradient.i;
    out[unit.hidden] = gradient.f;
    out[2 * unit.hidden] = gradient.o;
    out[3 * unit.hidden] = gradient.g;
  }
};

class LstmUnitLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::recurrent};

 private:
  bool independent_along(int, int axis, const std::vector<Shape>&) const override {
    return axis <= 1;
  }
  Arity bottoms() const override { return {3, 3}; }
  Arity tops() const override { return {2, 2}; }
  bool differentiable(int bottom) const override { return bottom < 2; }
  LayerTraits traits() const override { return {.reads = {true, false}}; }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape &c = bottoms[0], &x = bottoms[1], &cont = bottoms[2];
    require(c.axes() == 3 && c[0] == 1, "the first bottom is the state of one step, so its shape ",
            "must be 1 x sequences x hidden units, but it is ", c.brief());
    const Shape gates = {1, c[1], 4 * c[2]}, indicators = {1, c[1]};
    require(x == gates, "the second bottom holds four gates for each value of the state (",
            c.brief(), "), so its shape must be ", gates.brief(), ", but it is ", x.brief());
    require(cont == indicators, "the third bottom says for each sequence whether it goes on, so ",
            "its shape must be ", indicators.brief(), ", but it is ", cont.brief());
    return {{c, c}, {}};
  }

  template <typename T>
  static Unit<T> unit(const std::vector<Tensor>& bottom) {
    return {bottom[0].shape()[2], bottom[0].data<T>(), bottom[1].data<T>(), bottom[2].data<T>()};
  }

  void forward(Context& context, const Forward& pass) const override {
    const Shape& c = pass.bottom[0].shape();
    on(pass.bottom[0], [&]<typename T>() {
      parallel_rows(
          context, c[1], c[2],
          UnitForward<T>{unit<T>(pass.bottom), pass.top[0].data<T>(), pass.top[1].data<T>()});
    });
  }

  void backward(Context& context, const Backward& pass) const override {
    const Shape& c = pass.bottom[0].shape();
    on(pass.bottom[0], [&]<typename T>() {
      parallel_rows(context, c[1], c[2],
                    UnitBackward<T>{unit<T>(pass.bottom), pass.top_diff[0].data<T>(),
                                    pass.top_diff[1].data<T>(), pass.bottom_diff[0].data<T>(),
                                    pass.bottom_diff[1].data<T>()});
    });
  }
};

}  // namespace
REGISTER_LAYER(LSTMUnit, LstmUnitLayer);
}  // namespace crema
