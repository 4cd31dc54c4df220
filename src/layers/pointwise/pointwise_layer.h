// Base of pointwise layers: one bottom, one top of its shape, any order. Most are a FunctionLayer,
// which needs only a function and its gradient. For .cu files only, like kernels/pointwise/pointwise.h.
#pragma once

#include <type_traits>

#include "kernels/pointwise/pointwise.h"
#include "layers/layer.h"

namespace crema {

class PointwiseLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::activation, .elementwise = true};

  LayerTraits traits() const override {
    return {.in_place = true, .order_rule = OrderRule::any, .half_rule = HalfRule::follows};
  }
  Inference infer(const std::vector<Shape>& bottoms) const override { return {{bottoms[0]}, {}}; }
  bool independent_along(int, int, const std::vector<Shape>&) const override { return true; }
};

template <typename F>
struct ValueOf {
  F f;
  template <typename T>
  CREMA_HD T operator()(T x) const {
    return f.value(x);
  }
};

template <typename F>
struct GradientOf {
  F f;
  template <typename T>
  CREMA_HD T operator()(T dy, T z) const {
    return f.gradient(dy, z);
  }
};

// The layer of a function, a struct that can be copied to a GPU:
//   struct Tanh {
//     static constexpr bool from_top() { return true; }
//     template <typename T> CREMA_HD T value(T x) const;           // y
//     template <typename T> CREMA_HD T gradient(T dy, T y) const;  // dx
//   };
// from_top: gradient's second argument is y, and the layer can work in place; otherwise it is x. A
// layer with parameters gives their type as Message, and the function is constructed from it:
// explicit Clip(const ClipParameter&), which throws if they are wrong. A function that is no
// activation, or has bounds, declares the layer's `facts`.
template <typename F, typename Message = void>
class FunctionLayer : public PointwiseLayer {
  F function() const {
    if constexpr (std::is_void_v<Message>) {
      return F{};
    } else {
      return F(params<Message>());
    }
  }

 public:
  static constexpr LayerFacts facts = declared_facts<F>(PointwiseLayer::facts);

  void setup(Context&, const std::vector<Shape>&) override { function(); }
  LayerTraits traits() const override {
    LayerTraits traits = PointwiseLayer::traits();
    traits.in_place = function().from_top();
    traits.reads = reads();
    return traits;
  }
  BackwardReads reads() const {
    const bool from_top = function().from_top();
    return {!from_top, from_top};
  }
  void forward(Context& context, const Forward& pass) const override {
    pointwise(context, ValueOf<F>{function()}, pass.top[0], pass.bottom[0]);
  }
  void backward(Context& context, const Backward& pass) const override {
    const F f = function();
    pointwise(context, GradientOf<F>{f}, pass.bottom_diff[0], pass.top_diff[0],
              f.from_top() ? pass.top[0] : pass.bottom[0]);
  }
};

}  // namespace crema
