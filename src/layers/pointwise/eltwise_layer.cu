// Eltwise: combines bottoms of one shape elementwise.
//   SUM:  y = sum of coeff[i] * x[i] (coeff is 1 when absent)
//   PROD: y = product of x[i]
//   MAX:  y = maximum of x[i]
// Shapes: all bottoms and y are equal.
// Parameters: none.
// Gradient:
//   SUM:  dx[i] = coeff[i] * dy
//   PROD: dx[i] = dy * product of the others, or dy * y / x[i] with stable_prod_grad: false
//   MAX:  dx[i] = dy where x[i] was chosen, else 0; of equal values the second of the first two
//         bottoms wins, after them the earlier one
#include "kernels/pointwise/pointwise.h"
#include "layers/layer.h"
#include "proto/params/pointwise.pb.h"

namespace crema {
namespace {

struct CoefficientSum {
  float a, b;
  template <typename T>
  CREMA_HD T operator()(T x, T y) const {
    return a * x + b * y;
  }
};

struct Weighted {
  float a;
  template <typename T>
  CREMA_HD T operator()(T x) const {
    return a * x;
  }
};

struct Product {
  template <typename T>
  CREMA_HD T operator()(T x, T y) const {
    return x * y;
  }
};

struct Quotient {
  template <typename T>
  CREMA_HD T operator()(T x, T y) const {
    return x / y;
  }
};

// y = maximum of y_before and x; `choice` records the bottom that y comes from.
template <typename T>
struct MaxBody {
  const T *before, *x;
  T* y;
  uint8_t* choice;  // null: not needed
  uint8_t index;    // index of x among the bottoms
  CREMA_HD void operator()(int64_t i) const {
    const bool take = index == 1 ? !(before[i] > x[i]) : x[i] > before[i];
    y[i] = take ? x[i] : before[i];
    if (choice) choice[i] = take ? index : (index == 1 ? uint8_t(0) : choice[i]);
  }
};

template <typename T>
struct MaxGradientBody {
  const T* dy;
  const uint8_t* choice;
  T* dx;
  uint8_t index;
  CREMA_HD void operator()(int64_t i) const { dx[i] = choice[i] == index ? dy[i] : T(0); }
};

class EltwiseLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::join, .elementwise = true};

 private:
  bool independent_along(int, int, const std::vector<Shape>&) const override { return true; }
  const EltwiseParameter& p() const { return params<EltwiseParameter>(); }
  EltwiseParameter::EltwiseOp operation() const { return p().operation(); }
  float coefficient(size_t i) const {
    return p().coeff_size() ? p().coeff(static_cast<int>(i)) : 1;
  }

  Arity bottoms() const override { return {2, -1}; }
  LayerTraits traits() const override {
    return {.in_place = operation() == EltwiseParameter::SUM,
            .order_rule = OrderRule::any,
            .half_rule = HalfRule::follows,
            .reads = reads()};
  }
  BackwardReads reads() const {
    const bool product = operation() == EltwiseParameter::PROD;
    return {product, product && !p().stable_prod_grad()};
  }

  void setup(Context&, const std::vector<Shape>& bottoms) override {
    require(p().coeff_size() == 0 || p().coeff_size() == static_cast<int>(bottoms.size()),
            bottoms.size(), " bottoms need as many coeff (or none), but there are ",
            p().coeff_size());
    require(p().coeff_size() == 0 || operation() != EltwiseParameter::PROD,
            "coeff belongs to operation SUM, not to PROD");
    require(operation() != EltwiseParameter::MAX || bottoms.size() <= 256,
            "operation MAX takes at most 256 bottoms");
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    for (size_t i = 1; i < bottoms.size(); ++i) {
      require(bottoms[i] == bottoms[0], "all bottoms must have one shape, but bottom 0 is ",
              bottoms[0].brief(), " and bottom ", i, " is ", bottoms[i].brief());
    }
    if (operation() != EltwiseParameter::MAX) return {{bottoms[0]}, {}};
    return {{bottoms[0]}, {{bottoms[0], DType::u8}}};
  }

  void forward(Context& context, const Forward& pass) const override {
    const Tensor& y = pass.top[0];
    for (size_t i = 1; i < pass.bottom.size(); ++i) {
      const Tensor &before = i == 1 ? pass.bottom[0] : y, &x = pass.bottom[i];
      switch (operation()) {
        case EltwiseParameter::SUM:
          pointwise(context, CoefficientSum{i == 1 ? coefficient(0) : 1, coefficient(i)}, y, before,
                    x);
          break;
        case EltwiseParameter::PROD:
          pointwise(context, Product{}, y, before, x);
          break;
        case EltwiseParameter::MAX:
          on_real(y, [&]<typename T>() {
            parallel_for(context, y.count(),
                         MaxBody<T>{before.data<T>(), x.data<T>(), y.data<T>(),
                                    pass.saved[0].data<uint8_t>(), static_cast<uint8_t>(i)});
          });
      }
    }
  }

  void backward(Context& context, const Backward& pass) const override {
    // Bottom 0 last: its gradient may share the memory of dy.
    for (size_t i = pass.bottom_diff.size(); i-- > 0;) {
      const Tensor &dx = pass.bottom_diff[i], &dy = pass.top_diff[0];
      if (!dx) continue;
      switch (operation()) {
        case EltwiseParameter::SUM:
          if (dx.raw() != dy.raw() || coefficient(i) != 1)
            pointwise(context, Weighted{coefficient(i)}, dx, dy);
          break;
        case EltwiseParameter::PROD:
          product_gradient(context, pass, i);
          break;
        case EltwiseParameter::MAX:
          on_real(dx, [&]<typename T>() {
            parallel_for(context, dx.count(),
                         MaxGradientBody<T>{dy.data<T>(), pass.saved[0].data<uint8_t>(),
                                            dx.data<T>(), static_cast<uint8_t>(i)});
          });
      }
    }
  }

  void product_gradient(Context& context, const Backward& pass, size_t i) const {
    const Tensor &dx = pass.bottom_diff[i], &dy = pass.top_diff[0];
    if (!p().stable_prod_grad()) {
      pointwise(context, Quotient{}, dx, pass.top[0], pass.bottom[i]);
      pointwise(context, Product{}, dx, dx, dy);
      return;
    }
    const Tensor* partial = &dy;
    for (size_t other = 0; other < pass.bottom.size(); ++other) {
      if (other == i) continue;
      pointwise(context, Product{}, dx, *partial, pass.bottom[other]);
      partial = &dx;
    }
  }
};

}  // namespace
REGISTER_LAYER(Eltwise, EltwiseLayer);
}  // namespace crema
