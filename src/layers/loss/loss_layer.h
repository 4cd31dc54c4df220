// Base of losses that are the sum of terms over a divisor. For .cu files only, like
// device/parallel.h. A loss file has a struct of its terms, which can be copied to a GPU, and a
// layer:
//   template <typename T>
//   struct Absolute {
//     const T* x;
//     CREMA_HD T loss(int64_t row, int64_t column) const;               // one term
//     CREMA_HD T gradient(int64_t i, const LossScale<T>& scale) const;  // element i of dx
//   };
//   class AbsoluteLossLayer : public TermLoss<AbsoluteLossLayer> {
//    public:
//     Inference infer(const std::vector<Shape>& bottoms) const override;  // checks the shapes
//     template <typename T> Absolute<T> terms(const LossInput& in) const;
//   };
// The terms are one row with a term for each value of bottom 0, unless the layer has an extent().
// Instead of that gradient() they may have
//   T gradient(row, column, scale)          element row * columns + column of dx
//   void gradient(row, column, scale, dx)   writes to dx itself
// With T counted(row, column), what a term adds to the count of VALID, the divisor is that of the
// layer's normalizer(x), and saved[0] is loss_sums().
// With a normalizer(x), or a divisor that is proportional to the batch, the base also knows the
// layer's loss_parts().
// If several bottoms have a gradient, backward calls terms() for each of them. pair_loss.h has the
// base of losses of a - b, labelled_loss.h that of losses with labels.
#pragma once

#include "kernels/pointwise/pointwise.h"
#include "layers/loss/loss_terms.h"
#include "proto/layer.pb.h"

namespace crema {

// The inputs of a layer's terms, in both passes.
struct LossInput {
  const std::vector<Tensor>&bottom, &saved;
  uint64_t pass;
  const uint64_t* live_pass;
  LayerState* state;
  size_t of;  // in backward, the bottom whose gradient is computed

  // The values of a bottom; null if there are fewer.
  template <typename T>
  const T* at(size_t i) const {
    return i < bottom.size() ? bottom[i].data<T>() : nullptr;
  }
};

template <typename Pass>
LossInput loss_input(const Pass& pass, size_t of = 0) {
  return {pass.bottom, pass.saved, pass.pass, pass.live_pass, pass.state, of};
}

class LossLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::loss};

  static constexpr bool kPair = false;  // see pair_loss.h
  Arity bottoms() const override { return {2, 2}; }
  bool is_loss() const override { return true; }
  LayerTraits traits() const override { return {.reads = {true, false}}; }
  bool differentiable(int bottom) const override { return bottom == 0; }
  // Error for values of the bottoms that cannot be right.
  virtual void check_values(const Forward&) const {}

 protected:
  // The loss, and a second top of this shape if the file names it.
  std::vector<Shape> tops_with(const Shape& second) const {
    std::vector<Shape> tops = {Shape()};
    if (message().top_size() > 1) tops.push_back(second);
    return tops;
  }
};

template <typename Self, typename Base = LossLayer>
class TermLoss : public Base {
 public:
  // Self may have its own instead: the rows and columns of the terms, and those of a gradient with
  // two indices; the loss is factor / divisor * the sum. x: the shape of bottom 0.
  SumExtent extent(const Shape& x) const { return {1, 1, x.count()}; }
  SumExtent gradient_extent(const Shape& x) const { return self().extent(x); }
  double divisor(const Shape& x) const { return static_cast<double>(x[0]); }
  double factor() const { return 1; }

  LossParts loss_parts(const std::vector<Shape>& bottoms) const override {
    if constexpr (requires { self().normalizer(bottoms[0]); }) {
      return self().normalizer(bottoms[0]).parts();
    } else {
      return LossParts::all(PartsRule::mean);
    }
  }

  Tensor loss_count(const std::vector<Tensor>& saved) const override {
    return saved.empty() ? Tensor() : saved[0];
  }

  void forward(Context& context, const Forward& pass) const override {
    this->check_values(pass);
    on(pass.bottom[0], [&]<typename T>() {
      sum(context, pass, self().template terms<T>(loss_input(pass)), pass.top[0].data<T>());
    });
  }

  void backward(Context& context, const Backward& pass) const override {
    const std::vector<Tensor>& diff = pass.bottom_diff;
    on(pass.bottom[0], [&]<typename T>() {
      for (size_t i = 0; i < (Base::kPair ? 1 : diff.size()); ++i) {
        T* const da = diff[i].data<T>();
        T* const db = Base::kPair && diff.size() > 1 ? diff[1].data<T>() : nullptr;
        if (da || db)
          find_gradient(context, pass, self().template terms<T>(loss_input(pass, i)), da, db);
      }
    });
  }

 private:
  const Self& self() const { return static_cast<const Self&>(*this); }

  template <typename T, typename Terms>
  void sum(Context& context, const Forward& pass, const Terms& terms, T* loss) const {
    const Shape& x = pass.bottom[0].shape();
    const SumExtent e = self().extent(x);
    if constexpr (requires { terms.counted(0, 0); }) {
      sum_loss<T>(context, e.rows, e.columns, terms, self().normalizer(x), pass.saved[0],
                  pass.top[0]);
    } else {
      parallel_sum<T>(context, e, TermValue<Terms>{terms},
                      {loss, static_cast<T>(self().factor() / self().divisor(x))});
    }
  }

  template <typename T, typename Terms>
  void find_gradient(Context& context, const Backward& pass, const Terms& terms, T* da,
                     T* db) const {
    const Shape& x = pass.bottom[0].shape();
    const T* const weight = pass.top_diff[0].data<T>();
    if constexpr (requires { terms.counted(0, 0); }) {
      const LossDivisor<T> divisor = divisor_of<T>(self().normalizer(x), pass.saved[0]);
      run(context, x, terms, CountedScale<T>{weight, divisor}, da, db);
    } else {
      const T share = static_cast<T>(1 / self().divisor(x));
      run(context, x, terms, ConstantScale<T>{weight, share}, da, db);
    }
  }

  template <typename T, typename Terms, typename Scale>
  void run(Context& context, const Shape& x, const Terms& terms, const Scale& scale, T* da,
           T* db) const {
    const SumExtent e = self().gradient_extent(x);
    const TermGradient<Base::kPair, T, Terms, Scale> body{terms, scale, e.columns, da, db};
    if constexpr (requires { terms.gradient(0, scale.read()); }) {
      parallel_for(context, x.count(), body);
    } else {
      parallel_rows(context, e.rows, e.columns, body);
    }
  }
};

// A third bottom has a weight for each value of the first.
inline void require_weights(const std::vector<Shape>& bottoms) {
  require(bottoms.size() < 3 || bottoms[2].count() == bottoms[0].count(),
          "the third bottom must have a weight for each value of ", bottoms[0].brief(), ", but is ",
          bottoms.back().brief());
}

}  // namespace crema
