// Normalize: scales vectors to unit length. Two forks use this name for different layers:
//   with norm_param (SSD)                  y = a[c] * x / sqrt(sum(x^2) + eps)
//   without, or with normalize_param       y = x / |x|, |x| = sqrt(sum(x^2) + 1e-12), or with
//   (face recognition)                     normalize_type "L1" sum(|x|) + 1e-6
// The sums run over the channels at each position; in SSD, unless across_spatial: false, over the
// whole image.
// Shapes: x (N, C, ...); y as x. a is (C), or a scalar unless channel_shared: false. Without
// norm_param a second top (N, 1, H, W) has the norms.
// Parameters: a with norm_param, filled by scale_filler, 1 by default; else none.
// Gradient: dx = (g - d * sum(g * x) / |x|) / |x| with g = a * dy and d = x / |x|, sign(x) for L1;
// da[c] = sum of dy * x / |x|. fix_gradient omits the last division; with bp_norm the norms'
// gradient adds d times itself to dx, without it the norms pass no gradient.
#include "kernels/norm/row_norm.h"
#include "kernels/pointwise/channel.h"
#include "kernels/pointwise/pointwise.h"
#include "kernels/reduce/reduce.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"
#include "proto/params/normalization.pb.h"

namespace crema {
namespace {

// Maps elements to their vector and channel: (outer, channels, inner) in memory.
struct Vectors {
  int64_t outer, channels, inner;
  int64_t image;  // vector length if a vector is a whole image; 0: vectors of channels
  CREMA_HD int64_t count() const {
    return image ? outer * channels * inner / image : outer * inner;
  }
  // Splits elements into rows and columns, so that index divisions are needed once per row.
  int64_t rows() const { return inner == 1 ? outer : outer * channels; }
  CREMA_HD int64_t columns() const { return inner == 1 ? channels : inner; }
  CREMA_HD int64_t channel(int64_t row, int64_t column) const {
    return inner == 1 ? column : row % channels;
  }
  CREMA_HD int64_t of(int64_t row, int64_t column) const {
    if (image) return row * columns() / image;
    return inner == 1 ? row : row / channels * inner + column;
  }
  // The extent of one sum per vector.
  SumExtent extent() const {
    if (image) return {count(), 1, image};
    return inner == 1 ? SumExtent{count(), 1, channels} : SumExtent{count(), channels, 1};
  }
  CREMA_HD int64_t element(int64_t vector, int64_t row, int64_t column) const {
    if (image) return vector * image + column;
    return (vector / inner * channels + row + column) * inner + vector % inner;
  }
};

template <typename T>
struct NormTerm {
  const T* x;
  Vectors vectors;
  bool absolute;
  template <typename C>
  CREMA_HD C operator()(int64_t vector, int64_t row, int64_t column) const {
    const C value = x[vectors.element(vector, row, column)];
    return absolute ? (value < 0 ? -value : value) : value * value;
  }
};

template <typename C>
struct RootOfSum {
  C* norms;
  double eps;
  bool absolute;
  CREMA_HD void operator()(int64_t i, const double* sum) const {
    norms[i] = static_cast<C>(absolute ? *sum + eps : sqrt(*sum + eps));
  }
};

template <typename T>
struct ScaleBody {
  using C = Compute<T>;
  const T* x;
  const C *norms, *scale;  // scale: null, one value, or one per channel
  Vectors vectors;
  bool shared;
  T* y;
  CREMA_HD C factor(int64_t row, int64_t column) const {
    return scale ? scale[shared ? 0 : vectors.channel(row, column)] : C(1);
  }
  CREMA_HD void operator()(int64_t row, int64_t column) const {
    const int64_t i = row * vectors.columns() + column;
    y[i] = factor(row, column) * static_cast<C>(x[i]) / norms[vectors.of(row, column)];
  }
};

// dy * x * a / |x|, without a if it is shared by all channels.
template <typename T>
struct DotTerm {
  using C = Compute<T>;
  const T *x, *dy;
  const C *norms, *scale;  // scale: null, or one per channel
  Vectors vectors;
  template <typename>
  CREMA_HD C operator()(int64_t vector, int64_t row, int64_t column) const {
    const int64_t i = vectors.element(vector, row, column);
    const C product = static_cast<C>(x[i]) * static_cast<C>(dy[i]) / norms[vector];
    if (!scale) return product;
    return product * scale[vectors.image ? i / vectors.inner % vectors.channels : row + column];
  }
};

template <typename C>
struct DotsTerm {
  const C* dots;
  template <typename>
  CREMA_HD C operator()(int64_t, int64_t, int64_t column) const {
    return dots[column];
  }
};

template <typename T>
struct ScaleTerm {
  using C = Compute<T>;
  const T *x, *dy;
  const C* norms;
  Vectors vectors;
  template <typename>
  CREMA_HD C operator()(int64_t channel, int64_t row, int64_t column) const {
    const int64_t i = (row * vectors.channels + channel) * vectors.inner + column;
    const int64_t vector = vectors.image ? i / vectors.image : row * vectors.inner + column;
    return static_cast<C>(x[i]) * static_cast<C>(dy[i]) / norms[vector];
  }
};

template <typename T>
struct GradientBody {
  using C = Compute<T>;
  ScaleBody<T> forward;  // without y
  const T* dy;
  const C* dots;
  const T* norm_diff;  // may be null
  bool absolute, fixed;
  T* dx;
  CREMA_HD void operator()(int64_t row, int64_t column) const {
    const int64_t i = row * forward.vectors.columns() + column;
    const int64_t vector = forward.vectors.of(row, column);
    const C norm = forward.norms[vector], value = forward.x[i];
    const C a = forward.factor(row, column);
    const C direction = absolute ? C((value > 0) - (value < 0)) : value / norm;
    const C dot = forward.shared ? a * dots[vector] : dots[vector];
    C gradient = a * static_cast<C>(dy[i]) - direction * dot;
    if (!fixed) gradient /= norm;
    if (norm_diff) gradient += direction * static_cast<C>(norm_diff[vector]);
    dx[i] = gradient;
  }
};

template <typename T>
struct CopyBody {
  const Compute<T>* from;
  T* to;
  CREMA_HD void operator()(int64_t i) const { to[i] = from[i]; }
};

class NormalizeLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::norm, .keeps_channels = true};

 private:
  const NormalizeParameter& p() const { return params<NormalizeParameter>(); }
  const NormalizeVectorParameter& vector_p() const { return params<NormalizeVectorParameter>(); }
  bool scaled() const { return has_params<NormalizeParameter>(); }
  bool shared() const { return scaled() && p().channel_shared(); }
  bool absolute() const { return !scaled() && vector_p().normalize_type() == "L1"; }
  Arity tops() const override { return {1, scaled() ? 1 : 2}; }
  LayerTraits traits() const override {
    return {.order_rule = OrderRule::any, .half_rule = HalfRule::follows, .reads = {true, false}};
  }

  void setup(Context&, const std::vector<Shape>& bottoms) override {
    require(bottoms[0].axes() >= 2, "Normalize needs a bottom of 2 axes or more, this one is ",
            bottoms[0].brief());
    require(!scaled() || !has_params<NormalizeVectorParameter>(),
            "norm_param makes this the layer of SSD, normalize_param that of face recognition: "
            "give one of them");
    const std::string& type = vector_p().normalize_type();
    require(type == "L1" || type == "L2", "normalize_type is \"", type,
            "\", but must be \"L1\" or \"L2\"");
    if (!scaled()) return;
    filler_ = p().scale_filler();
    if (!p().has_scale_filler()) filler_.set_value(1);
    add_parameter(shared() ? Shape() : Shape{bottoms[0][1]}, filler_);
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape& x = bottoms[0];
    Inference inference{{x}, {{{norm_count(x)}, {}}}};
    if (message().top_size() > 1) {
      Shape norms = x;
      norms[1] = 1;
      while (norms.axes() < 4) norms.push_back(1);
      inference.tops.push_back(norms);
    }
    return inference;
  }

  bool across() const { return scaled() && p().across_spatial(); }
  int64_t norm_count(const Shape& x) const { return across() ? x[0] : x[0] * x.count(2); }
  Vectors vectors_of(const Tensor& x) const {
    const ChannelView view = ChannelView::of(x.shape(), x.format());
    return {view.outer, view.channels, view.inner, across() ? x.shape().count(1) : 0};
  }

  // Contiguous rows with one factor per channel or none: the case that kernels/norm/row_norm.h
  // supports.
  bool by_rows(const Shape& x, const Format& format) const {
    return ChannelView::of(x, format).inner == 1 && !across() && !shared() && !absolute() &&
           message().top_size() <= 1 && !vector_p().fix_gradient();
  }
  RowNormCase row_norm_case(const Shape& x) const {
    RowNormCase c;
    c.view = RowNormView::of_rows(norm_count(x), x[1]);
    c.eps = scaled() ? p().eps() : 1e-12f;
    c.center = false;
    return c;
  }
  static RowNormParameters row_norm_parameters(const std::vector<Tensor>& parameters) {
    return {parameters.empty() ? Tensor() : parameters[0], {}};
  }

  // Workspace: one dot product per vector.
  Prepared prepare(Context& context, const Preparation& preparation) const override {
    const Shape& x = preparation.bottoms[0];
    Prepared prepared;
    prepared.workspace = norm_count(x) * size_of(preparation.dtype);
    if (by_rows(x, {preparation.bottom_orders[0], nullptr}))
      prepared.workspace = row_norm_workspace(context, row_norm_case(x).view);
    return prepared;
  }

  template <typename T>
  ScaleBody<T> scale_body(const Tensor& x, const Tensor& norms,
                          const std::vector<Tensor>& parameters, T* y) const {
    using C = Compute<T>;
    const C* scale = parameters.empty() ? nullptr : parameters[0].data<C>();
    return {x.data<T>(), norms.data<C>(), scale, vectors_of(x), shared(), y};
  }

  void forward(Context& context, const Forward& pass) const override {
    const Tensor &x = pass.bottom[0], &norms = pass.saved[0];
    if (by_rows(x.shape(), x.format())) {
      return row_norm_forward(context, row_norm_case(x.shape()),
                              row_norm_parameters(pass.parameters), x, pass.top[0],
                              {{}, pass.saved[0]});
    }
    const Vectors vectors = vectors_of(x);
    on_real(x, [&]<typename T>() {
      using C = Compute<T>;
      const double eps = scaled() ? p().eps() : absolute() ? 1e-6 : 1e-12;
      parallel_sum<C>(context, vectors.extent(), NormTerm<T>{x.data<T>(), vectors, absolute()},
                      RootOfSum<C>{norms.data<C>(), eps, absolute()});
      parallel_rows(context, vectors.rows(), vectors.columns(),
                    scale_body<T>(x, norms, pass.parameters, pass.top[0].data<T>()));
      if (pass.top.size() == 1) return;
      parallel_for(context, norms.count(), CopyBody<T>{norms.data<C>(), pass.top[1].data<T>()});
    });
  }

  void backward(Context& context, const Backward& pass) const override {
    const Tensor &x = pass.bottom[0], &dy = pass.top_diff[0], &dx = pass.bottom_diff[0];
    const Tensor scale_diff = scaled() ? pass.parameter_diff[0] : Tensor();
    if (by_rows(x.shape(), x.format())) {
      RowNormGradients gradients;
      gradients.dx = dx;
      gradients.d_scale = scale_diff;
      gradients.accumulate_scale = scale_diff && pass.accumulate[0];
      return row_norm_backward(context, row_norm_case(x.shape()),
                               row_norm_parameters(pass.parameters), x, dy, {{}, pass.saved[0]},
                               gradients, pass.workspace);
    }
    const Vectors vectors = vectors_of(x);
    on_real(x, [&]<typename T>() {
      using C = Compute<T>;
      const ScaleBody<T> forward = scale_body<T>(x, pass.saved[0], pass.parameters, nullptr);
      C* dots = pass.workspace.data<C>();
      if (dx || (scale_diff && shared())) {
        parallel_sum<C>(context, vectors.extent(),
                        DotTerm<T>{x.data<T>(), dy.data<T>(), forward.norms,
                                   shared() ? nullptr : forward.scale, vectors},
                        {dots});
      }
      if (scale_diff) {
        const SumTarget<C> target{scale_diff.data<C>(), 1, pass.accumulate[0] != 0};
        if (shared()) {
          parallel_sum<C>(context, {1, 1, vectors.count()}, DotsTerm<C>{dots}, target);
        } else {
          parallel_sum<C>(context, {vectors.channels, vectors.outer, vectors.inner},
                          ScaleTerm<T>{x.data<T>(), dy.data<T>(), forward.norms, vectors}, target);
        }
      }
      if (!dx) return;
      const bool norms_too = vector_p().bp_norm() && pass.top_diff.size() > 1;
      const T* norm_diff = norms_too ? pass.top_diff[1].data<T>() : nullptr;
      parallel_rows(context, vectors.rows(), vectors.columns(),
                    GradientBody<T>{forward, dy.data<T>(), dots, norm_diff, absolute(),
                                    !scaled() && vector_p().fix_gradient(), dx.data<T>()});
    });
  }

  FillerParameter filler_;
};

}  // namespace
REGISTER_LAYER(Normalize, NormalizeLayer);
}  // namespace crema
