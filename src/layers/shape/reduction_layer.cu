// Reduction: reduces all axes from `axis` on to one value.
//   SUM y = c * sum of x   ASUM y = c * sum of |x|   SUMSQ y = c * sum of x^2   MEAN y = c * mean
//   TOPK (a fork) y = c * mean of the k largest
// with c = coeff, over all axes from `axis` (default 0) on.
// Shapes: x any; y has the axes of x before `axis`, a scalar for 0.
// Parameters: none.
// Gradient: dx = c * dy times 1, sign(x), 2 x, 1 / count; TOPK 1 / k where x was among the largest.
#include "kernels/pointwise/pointwise.h"
#include "kernels/reduce/reduce.h"
#include "kernels/softmax/top_k_mean.h"
#include "layers/layer.h"
#include "proto/params/shape.pb.h"

namespace crema {
namespace {

using Op = ReductionParameter;

// The term of x[i] in the sum, and its derivative.
struct Summand {
  Op::ReductionOp op;
  template <typename T>
  CREMA_HD T value(T x) const {
    return op == Op::ASUM ? (x < 0 ? -x : x) : op == Op::SUMSQ ? x * x : x;
  }
  template <typename T>
  CREMA_HD T slope(T x) const {
    if (op == Op::ASUM) return x > 0 ? T(1) : x < 0 ? T(-1) : T(0);
    return op == Op::SUMSQ ? 2 * x : T(1);
  }
};

template <typename Real>
struct RowTerm {
  Summand summand;
  const Real* x;
  int64_t columns;
  template <typename T>
  CREMA_HD T operator()(int64_t row, int64_t, int64_t column) const {
    return summand.value(x[row * columns + column]);
  }
};

template <typename T>
struct ReductionGradient {
  Summand summand;
  T factor;
  const T *x, *dy;
  T* dx;
  int64_t columns;
  CREMA_HD void operator()(int64_t row, int64_t column) const {
    const int64_t i = row * columns + column;
    dx[i] = factor * dy[row] * (x ? summand.slope(x[i]) : T(1));
  }
};

class ReductionLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::reduction};

 private:
  // If the samples are reduced, the top's shape no longer has them; a loss counts them anyway.
  bool independent_along(int, int, const std::vector<Shape>&) const override { return true; }
  const ReductionParameter& p() const { return params<ReductionParameter>(); }
  Op::ReductionOp op() const { return p().operation(); }
  bool reads_x() const { return op() == Op::ASUM || op() == Op::SUMSQ; }
  LayerTraits traits() const override { return {.reads = {reads_x(), false}}; }
  int axis(const Shape& x) const { return x.axes() == 0 ? 0 : x.canonical_axis(p().axis()); }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape& x = bottoms[0];
    Shape y;
    for (int i = 0; i < axis(x); ++i) y.push_back(x[i]);
    if (op() != Op::TOPK) return {{y}, {}};
    require(p().k() >= 1 && p().k() <= x.count(axis(x)), "k is ", p().k(), ", but there are ",
            x.count(axis(x)), " values to choose from");
    return {{y}, {{x, DType::u8}}};
  }

  LossParts loss_parts(const std::vector<Shape>& bottoms) const override {
    if (axis(bottoms[0]) > 0) return {};
    if (op() == Op::MEAN) return LossParts::all(PartsRule::mean);
    if (op() != Op::TOPK) return LossParts::all(PartsRule::sum);
    return LossParts::none(
        "TOPK with axis: 0 chooses the largest values of the whole batch, and each rank sees only "
        "its "
        "own part of them; with axis: 1 and a second Reduction they are those of each sample");
  }

  TopKMean top_k(const Shape& x) const {
    return {x.count(0, axis(x)), x.count(axis(x)), 1, p().k(), p().coeff()};
  }

  void forward(Context& context, const Forward& pass) const override {
    const Tensor &x = pass.bottom[0], &y = pass.top[0];
    if (op() == Op::TOPK) return top_k_mean(context, top_k(x.shape()), x, pass.saved[0], y);
    on(x, [&]<typename T>() {
      const int64_t columns = x.shape().count(axis(x.shape())), rows = y.count();
      parallel_sum<T>(context, {rows, 1, columns}, RowTerm<T>{{op()}, x.data<T>(), columns},
                      {y.data<T>(), factor<T>(columns)});
    });
  }

  void backward(Context& context, const Backward& pass) const override {
    const Tensor &dy = pass.top_diff[0], &dx = pass.bottom_diff[0];
    if (op() == Op::TOPK)
      return top_k_mean_gradient(context, top_k(dx.shape()), dy, pass.saved[0], dx);
    on(dx, [&]<typename T>() {
      const int64_t columns = dx.shape().count(axis(dx.shape()));
      const T* x = reads_x() ? pass.bottom[0].data<T>() : nullptr;
      parallel_rows(
          context, dy.count(), columns,
          ReductionGradient<T>{{op()}, factor<T>(columns), x, dy.data<T>(), dx.data<T>(), columns});
    });
  }

  template <typename T>
  T factor(int64_t columns) const {
    return op() == Op::MEAN ? T(p().coeff()) / static_cast<T>(columns) : T(p().coeff());
  }
};

}  // namespace
REGISTER_LAYER(Reduction, ReductionLayer);
}  // namespace crema
