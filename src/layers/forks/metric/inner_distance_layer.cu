// InnerDistance (forks): the distance of each vector to each row of the weights.
//   L2: y[m,n] = b[n] + sum over k of (x[m,k] - w[n,k])^2    L1: the absolute differences
// Shapes: the axes of x before `axis` form m and the rest k; y keeps the former and has num_output
// instead of the latter. A second bottom gives w instead, a third b.
// Parameters: w (num_output, K) and, unless bias_term is false, b (num_output); none with more than
// one bottom. With normalize: true forward L2-normalizes the rows of w, in place.
// Gradient, L2: dx = 2 * (x * sum of dy over n - dy w), dw = 2 * (w * sum of dy over m - dy' x),
// with the normalized w; L1: sums of dy times signs; db sums dy over m.
#include "kernels/gemm/gemm.h"
#include "kernels/norm/l2_normalize.h"
#include "kernels/pointwise/pointwise.h"
#include "kernels/reduce/reduce.h"
#include "kernels/reduce/reduce_values.h"
#include "layers/layer.h"
#include "proto/params/forks_face.pb.h"

namespace crema {
namespace {

template <typename T>
struct AbsoluteDistance {
  const T *x, *w;
  int64_t inputs, outputs;
  template <typename>
  CREMA_HD T operator()(int64_t i, int64_t, int64_t k) const {
    const T d = x[i / outputs * inputs + k] - w[i % outputs * inputs + k];
    return d < 0 ? -d : d;
  }
};

// On entry y is the product of x and w (L2), or the distance (L1).
template <typename T>
struct Distances {
  const T *xx, *ww, *b;  // xx, ww: squared lengths, null for L1; b: may be null
  int64_t outputs;
  T* y;
  CREMA_HD void operator()(int64_t m, int64_t n) const {
    T distance = y[m * outputs + n];
    if (xx) distance = xx[m] + ww[n] - 2 * distance;
    y[m * outputs + n] = (distance > 0 ? distance : T(0)) + (b ? b[n] : T(0));
  }
};

// dv[r,k] += 2 * sums[r] * v[r,k]
template <typename T>
struct PullBack {
  const T *v, *sums;
  int64_t inputs;
  T* dv;
  CREMA_HD void operator()(int64_t r, int64_t k) const {
    dv[r * inputs + k] += 2 * sums[r] * v[r * inputs + k];
  }
};

// L1: dv[r,k] (+)= sum over o of dy[r,o] * sign(v[r,k] - other[o,k])
template <typename T>
struct Signs {
  const T *dy, *v, *others;
  int64_t inputs, count, step_r, step_o;  // step_*: strides of dy
  bool accumulate;
  T* dv;
  CREMA_HD void operator()(int64_t r, int64_t k) const {
    T sum = 0;
    for (int64_t o = 0; o < count; ++o) {
      const T d = v[r * inputs + k] - others[o * inputs + k];
      sum += dy[r * step_r + o * step_o] * (d > 0 ? T(1) : d < 0 ? T(-1) : T(0));
    }
    dv[r * inputs + k] = sum + (accumulate ? dv[r * inputs + k] : T(0));
  }
};

template <typename T>
struct Strided {
  const T* values;
  int64_t of_sum, of_column;
  template <typename>
  CREMA_HD T operator()(int64_t k, int64_t row, int64_t column) const {
    return values[k * of_sum + (row + column) * of_column];
  }
};

class InnerDistanceLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::dense, .learned = 1};

 private:
  const InnerDistanceParameter& p() const { return params<InnerDistanceParameter>(); }
  Arity bottoms() const override { return {1, 3}; }
  bool squared() const { return p().distance_type() == "L2"; }
  LayerTraits traits() const override {
    return {.reads = {true, false}, .changes_parameters = own_ && p().normalize()};
  }

  void setup(Context&, const std::vector<Shape>& bottoms) override {
    require(p().num_output() > 0,
            "inner_distance_param has no num_output (or 0): how many rows do the weights have?");
    require(squared() || p().distance_type() == "L1", "distance_type is \"", p().distance_type(),
            "\", but must be \"L1\" or \"L2\"");
    require(!p().transpose() && !p().update_center_only(),
            "inner_distance_param: transpose and update_center_only are not supported");
    axis_ = bottoms[0].canonical_axis(p().axis());
    inputs_ = bottoms[0].count(axis_);
    outputs_ = p().num_output();
    own_ = bottoms.size() == 1;
    biased_ = bottoms.size() == 3 || (own_ && p().bias_term());
    if (!own_) return;
    add_parameter({outputs_, inputs_}, p().weight_filler());
    if (biased_) add_parameter({outputs_}, p().bias_filler());
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape& x = bottoms[0];
    require(x.count(axis_) == inputs_, "the bottom has shape ", x.brief(), ", that is ",
            x.count(axis_), " values a vector, but the weights were made for ", inputs_);
    require(own_ || bottoms[1].count() == Shape{outputs_, inputs_}.count(),
            "the second bottom must be ", outputs_, " rows of ", inputs_, " values, but is ",
            bottoms.size() > 1 ? bottoms[1].brief() : "");
    require(bottoms.size() < 3 || bottoms[2].count() == outputs_, "the third bottom must have ",
            outputs_, " values, but is ", bottoms.back().brief());
    Shape y;
    for (int axis = 0; axis < axis_; ++axis) y.push_back(x[axis]);
    y.push_back(outputs_);
    return {{y}, {}};
  }

  Prepared prepare(Context&, const Preparation& preparation) const override {
    Prepared prepared;  // workspace: squared lengths, or sums of dy
    prepared.workspace = static_cast<size_t>(preparation.bottoms[0].count(0, axis_) + outputs_) *
                         size_of(preparation.dtype);
    return prepared;
  }

  const Tensor& weights(const std::vector<Tensor>& bottom,
                        const std::vector<Tensor>& parameters) const {
    return own_ ? parameters[0] : bottom[1];
  }

  void forward(Context& context, const Forward& pass) const override {
    const Tensor &x = pass.bottom[0], &w = weights(pass.bottom, pass.parameters);
    const int64_t rows = x.shape().count(0, axis_);
    const Tensor b = !biased_ ? Tensor() : own_ ? pass.parameters[1] : pass.bottom[2];
    on(x, [&]<typename T>() {
      T *y = pass.top[0].data<T>(), *lengths = pass.workspace.data<T>();
      if (own_ && p().normalize()) l2_normalize_rows(context, 1e-6, w, pass.workspace);
      if (squared()) {
        parallel_sum<T>(context, {rows, 1, inputs_}, SquaredRow<T>{x.data<T>(), inputs_},
                        {lengths});
        parallel_sum<T>(context, {outputs_, 1, inputs_}, SquaredRow<T>{w.data<T>(), inputs_},
                        {lengths + rows});
        gemm<T>(context, Gemm{.transpose_b = true, .m = rows, .n = outputs_, .k = inputs_},
                x.data<T>(), w.data<T>(), y);
      } else {
        parallel_sum<T>(context, {rows * outputs_, 1, inputs_},
                        AbsoluteDistance<T>{x.data<T>(), w.data<T>(), inputs_, outputs_}, {y});
      }
      const T* squares = squared() ? lengths : nullptr;
      if (squared() || biased_)
        parallel_rows(context, rows, outputs_,
                      Distances<T>{squares, lengths + rows, b.data<T>(), outputs_, y});
    });
  }

  // Gradient of x, or of w if `transposed`: dy is then read by columns.
  template <typename T>
  void gradient(Context& context, bool transposed, int64_t rows, const T* dy, const T* v,
                const T* others, const T* sums, bool accumulate, T* dv) const {
    const int64_t own = transposed ? outputs_ : rows, count = transposed ? rows : outputs_;
    if (!squared()) {
      const Signs<T> signs{dy,
                           v,
                           others,
                           inputs_,
                           count,
                           transposed ? 1 : outputs_,
                           transposed ? outputs_ : 1,
                           accumulate,
                           dv};
      return parallel_rows(context, own, inputs_, signs);
    }
    gemm<T>(context,
            Gemm{.transpose_a = transposed,
                 .m = own,
                 .n = inputs_,
                 .k = count,
                 .alpha = -2,
                 .beta = accumulate ? 1.0f : 0.0f},
            dy, others, dv);
    parallel_rows(context, own, inputs_, PullBack<T>{v, sums, inputs_, dv});
  }

  void backward(Context& context, const Backward& pass) const override {
    const Tensor &x = pass.bottom[0], &w = weights(pass.bottom, pass.parameters);
    const int64_t rows = x.shape().count(0, axis_);
    const Tensor& dw = own_ ? pass.parameter_diff[0] : pass.bottom_diff[1];
    Tensor db;
    if (biased_) db = own_ ? pass.parameter_diff[1] : pass.bottom_diff[2];
    on(x, [&]<typename T>() {
      const T* dy = pass.top_diff[0].data<T>();
      T *row_sums = pass.workspace.data<T>(), *sums_of_columns = row_sums + rows;
      parallel_sum<T>(context, {rows, 1, outputs_}, Strided<T>{dy, outputs_, 1}, {row_sums});
      const Strided<T> columns{dy, 1, outputs_};
      parallel_sum<T>(context, {outputs_, rows, 1}, columns, {sums_of_columns});
      if (db)
        parallel_sum<T>(context, {outputs_, rows, 1}, columns,
                        {db.data<T>(), T(1), own_ && pass.accumulate[1]});
      if (dw)
        gradient<T>(context, true, rows, dy, w.data<T>(), x.data<T>(), sums_of_columns,
                    own_ && pass.accumulate[0], dw.data<T>());
      if (const Tensor& dx = pass.bottom_diff[0])
        gradient<T>(context, false, rows, dy, x.data<T>(), w.data<T>(), row_sums, false,
                    dx.data<T>());
    });
  }

  int64_t multiply_adds(const std::vector<Shape>&, const std::vector<Shape>& tops) const override {
    return tops[0].count() * inputs_;
  }

  int axis_ = 1;
  int64_t inputs_ = 0, outputs_ = 0;
  bool own_ = true, biased_ = false;
};

}  // namespace
REGISTER_LAYER(InnerDistance, InnerDistanceLayer);
}  // namespace crema
