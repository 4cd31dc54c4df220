// MatMul: the product of two matrices, or of as many pairs of them as the axes in front have.
//   y[.., m, n] = sum over k of a[.., m, k] * b[.., k, n]
// Shapes: a (.., M, K), b (.., K, N) with the same extents in front; y (.., M, N).
// Parameters: none. For a matrix of weights see InnerProduct, for attention MultiHeadAttention.
// Gradient: da = dy b', db = a' dy.
#include "kernels/gemm/gemm_groups.h"
#include "layers/layer.h"
#include "tensor/on.h"

namespace crema {
namespace {

class MatMulLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::dense};

 private:
  Arity bottoms() const override { return {2, 2}; }
  LayerTraits traits() const override {
    return {.half_rule = HalfRule::prefers, .reads = {true, false}};
  }
  // Rows of a are independent, too, but b has no axis that they share.
  bool independent_along(int, int axis, const std::vector<Shape>& bottoms) const override {
    return axis < bottoms[0].axes() - 2;
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape &a = bottoms[0], &b = bottoms[1];
    const int axes = a.axes();
    bool fits = axes >= 2 && b.axes() == axes && b[axes - 2] == a[axes - 1];
    for (int axis = 0; fits && axis < axes - 2; ++axis) fits = a[axis] == b[axis];
    require(fits, "the bottoms are ", a.brief(), " and ", b.brief(),
            "; expected M x K and K x N, with the same axes in front of both");
    Shape y = a;
    y[axes - 1] = b[axes - 1];
    return {{y}, {}};
  }

  struct State : LayerState {
    Precision precision = Precision::fp32;
  };

  Prepared prepare(Context&, const Preparation& preparation) const override {
    Prepared prepared;
    prepared.make_state<State>().precision = preparation.precision;
    return prepared;
  }

  int64_t multiply_adds(const std::vector<Shape>& bottoms,
                        const std::vector<Shape>& tops) const override {
    return tops[0].count() * bottoms[0][bottoms[0].axes() - 1];
  }

  // c (m x n) = op(a) op(b), for each pair.
  template <typename Pass>
  static Gemm product(const Pass& pass, int64_t m, int64_t n, int64_t k) {
    Gemm g;
    g.precision = state_of<State>(pass).precision;
    g.m = m, g.n = n, g.k = k;
    g.batch = pass.bottom[0].shape().count(0, pass.bottom[0].shape().axes() - 2);
    g.batch_stride_a = m * k, g.batch_stride_b = k * n, g.batch_stride_c = m * n;
    return g;
  }

  struct Sizes {
    int64_t m, n, k;
  };
  template <typename Pass>
  static Sizes sizes_of(const Pass& pass) {
    const Shape &a = pass.bottom[0].shape(), &b = pass.bottom[1].shape();
    const int axes = a.axes();
    return {a[axes - 2], b[axes - 1], a[axes - 1]};
  }

  void forward(Context& context, const Forward& pass) const override {
    const Sizes s = sizes_of(pass);
    on_real(pass.top[0], [&]<typename T>() {
      gemm_groups(context, product(pass, s.m, s.n, s.k), {}, pass.bottom[0].data<T>(),
                  pass.bottom[1].data<T>(), pass.top[0].data<T>(), {});
    });
  }

  void backward(Context& context, const Backward& pass) const override {
    const Sizes s = sizes_of(pass);
    on_real(pass.top_diff[0], [&]<typename T>() {
      const T* dy = pass.top_diff[0].data<T>();
      if (pass.bottom_diff[0]) {
        Gemm g = product(pass, s.m, s.k, s.n);
        g.transpose_b = true;
        gemm_groups(context, g, {}, dy, pass.bottom[1].data<T>(), pass.bottom_diff[0].data<T>(),
                    {});
      }
      if (pass.bottom_diff[1]) {
        Gemm g = product(pass, s.k, s.n, s.m);
        g.transpose_a = true;
        gemm_groups(context, g, {}, pass.bottom[0].data<T>(), dy, pass.bottom_diff[1].data<T>(),
                    {});
      }
    });
  }
};

}  // namespace
REGISTER_LAYER(MatMul, MatMulLayer);
}  // namespace crema
