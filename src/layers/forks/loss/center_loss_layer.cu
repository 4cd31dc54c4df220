// CenterLoss (forks): pulls vectors towards a learned centre of their class.
//   L2: loss = 1 / (2N) * sum of |x[n] - c[label[n]]|^2
//   L1: loss = 1 / N * sum of the absolute differences
// center_loss_param.loss_weight w multiplies loss and dx.
// Shapes: x with the axes before `axis` as N and the rest as K, labels (N), integers from 0 to
// num_output - 1; the loss is a scalar.
// Parameters: c (num_output, K).
// Gradient: dx = (x - c) / N, for L1 its sign, times the loss weight; none for labels. The centres
// have a separate rule, independent of loss_weight: dc[k] = sum of (c[k] - x[n]) (L1: its sign)
// over the vectors of class k / (1 + their number). With cluster_num instead of num_output, as in
// one fork, the layer moves the centres itself in each backward pass of training, c[k] += alpha * w
// * sum of (x[n] - c[k]) / (1 + their number), and dx = w * (x - c) is not divided by N; the solver
// leaves c alone.
#include "kernels/labels/equal_links.h"
#include "layers/loss/labelled_loss.h"
#include "proto/params/forks_face.pb.h"

namespace crema {
namespace {

template <typename T>
struct ToCentre {
  const T *x, *centres;
  NotedLabels<T> labels;
  int64_t inputs;
  bool squared;

  CREMA_HD T difference(int64_t n, int64_t k) const {
    const int label = labels.at(n);
    return x[n * inputs + k] - (label < 0 ? T(NAN) : centres[label * inputs + k]);
  }
  template <typename>
  CREMA_HD T operator()(int64_t, int64_t n, int64_t k) const {
    if (k == 0) labels.note(n);
    const T d = difference(n, k);
    return squared ? d * d : d < 0 ? -d : d;
  }
  CREMA_HD T slope(int64_t n, int64_t k) const {
    const T d = difference(n, k);
    return squared ? d : d > 0 ? T(1) : d < 0 ? T(-1) : d;
  }
};

template <typename T>
struct VectorGradient {
  ToCentre<T> of;
  const T* weight;
  T share;
  T* dx;
  CREMA_HD void operator()(int64_t n, int64_t k) const {
    dx[n * of.inputs + k] = of.slope(n, k) * share * *weight;
  }
};

// The first vector of each class in the batch sums the terms of its whole class.
template <typename T>
struct CentreGradient {
  ToCentre<T> of;
  const int32_t *next, *first;  // of link_equal()
  const T* weight;
  T share;
  T* dc;
  CREMA_HD void operator()(int64_t n, int64_t k) const {
    if (!first[n]) return;
    T sum = 0, count = 1;
    for (int64_t m = n; m >= 0; m = next[m]) {
      sum -= of.slope(m, k);
      count += 1;
    }
    const int64_t i = of.labels.at(n) * of.inputs + k;
    dc[i] += sum / count * share * *weight;
  }
};

// The same, but moves the centre.
template <typename T>
struct MoveCentre {
  ToCentre<T> of;
  const int32_t *next, *first;
  T step;
  T* centres;
  CREMA_HD void operator()(int64_t n, int64_t k) const {
    if (!first[n]) return;
    T sum = 0, count = 1;
    for (int64_t m = n; m >= 0; m = next[m]) {
      sum += of.slope(m, k);
      count += 1;
    }
    centres[of.labels.at(n) * of.inputs + k] += step * sum / count;
  }
};

class CenterLossLayer : public LabelledLossLayer {
 public:
  static constexpr LayerFacts facts = {
      .kind = LayerKind::loss, .learned = 1, .labels = LabelKind::classes};

 private:
  const CenterLossParameter& p() const { return params<CenterLossParameter>(); }
  bool moves() const { return p().has_cluster_num(); }
  int64_t classes() const { return moves() ? p().cluster_num() : p().num_output(); }
  bool squared() const { return p().distance_type() == "L2"; }
  LabelRange range(const Shape&) const override { return {classes()}; }

  void setup(Context&, const std::vector<Shape>& bottoms) override {
    require(classes() > 0,
            "center_loss_param has no num_output (or 0): how many classes are there?");
    require(!moves() || !p().has_num_output(),
            "center_loss_param has num_output and cluster_num, two forks' names for the number of "
            "classes: keep one of them");
    require(squared() || p().distance_type() == "L1", "distance_type is \"", p().distance_type(),
            "\", but must be \"L1\" or \"L2\"");
    axis_ = bottoms[0].canonical_axis(p().axis());
    inputs_ = bottoms[0].count(axis_);
    add_parameter({classes(), inputs_}, p().center_filler(), !moves());
  }

  Inference shapes(const std::vector<Shape>& bottoms) const override {
    const Shape& x = bottoms[0];
    require(x.count(axis_) == inputs_, "the bottom has shape ", x.brief(), ", that is ",
            x.count(axis_), " values a vector, but the centres were made for ", inputs_);
    require(bottoms[1].count() == x.count(0, axis_), "there must be one label for each of ",
            x.count(0, axis_), " vectors (", x.brief(), "), but the labels are ",
            bottoms[1].brief());
    return {{Shape()}, {}};
  }

  LossParts loss_parts(const std::vector<Shape>&) const override {
    const bool fixed = !moves() && message().param_size() > 0 && message().param(0).lr_mult() == 0;
    if (fixed) return LossParts::all(PartsRule::mean);
    return LossParts::none(
        "a centre moves by a sum that is divided by the vectors of its class in the batch, and "
        "each "
        "rank sees only its own part of them; train with -batch_mode per_gpu, or give num_output "
        "and "
        "param { lr_mult: 0 } for fixed centres");
  }

  // Workspace: links between equal labels.
  Prepared prepare(Context&, const Preparation& preparation) const override {
    Prepared prepared;
    prepared.workspace = static_cast<size_t>(2 * preparation.bottoms[1].count()) * sizeof(int32_t);
    return prepared;
  }

  template <typename T>
  ToCentre<T> body(const LossInput& in, const Tensor& centres) const {
    return {in.at<T>(0), centres.data<T>(), labels<T>(in), inputs_, squared()};
  }

  void forward(Context& context, const Forward& pass) const override {
    const int64_t batch = pass.bottom[1].count();
    check_values(pass);
    on(pass.bottom[0], [&]<typename T>() {
      parallel_sum<T>(context, {1, batch, inputs_}, body<T>(loss_input(pass), pass.parameters[0]),
                      {pass.top[0].data<T>(),
                       p().loss_weight() * (squared() ? T(0.5) : T(1)) / static_cast<T>(batch)});
    });
  }

  void backward(Context& context, const Backward& pass) const override {
    const int64_t batch = pass.bottom[1].count();
    on(pass.bottom[0], [&]<typename T>() {
      const ToCentre<T> of = body<T>(loss_input(pass), pass.parameters[0]);
      const T* weight = pass.top_diff[0].data<T>();
      if (const Tensor& dx = pass.bottom_diff[0]) {
        const T share = p().loss_weight() / static_cast<T>(moves() ? 1 : batch);
        parallel_rows(context, batch, inputs_, VectorGradient<T>{of, weight, share, dx.data<T>()});
      }
      auto* const next = pass.workspace.data<int32_t>();
      const EqualLinks<T> links{of.labels.labels, batch, of.labels.classes, next, next + batch};
      if (moves() && training()) {
        link_equal(context, 1, links);
        parallel_rows(
            context, batch, inputs_,
            MoveCentre<T>{of, next, next + batch, static_cast<T>(p().alpha() * p().loss_weight()),
                          pass.parameters[0].data<T>()});
      }
      if (const Tensor& dc = pass.parameter_diff[0]) {
        if (!pass.accumulate[0]) zero(context, dc);
        // The incoming gradient is loss_weight times the loss scale that the solver removes from
        // all gradients.
        const float loss_weight = message().loss_weight_size() > 0 ? message().loss_weight(0) : 1;
        link_equal(context, 1, links);
        parallel_rows(context, batch, inputs_,
                      CentreGradient<T>{of, next, next + batch, weight,
                                        T(1) / static_cast<T>(loss_weight), dc.data<T>()});
      }
    });
  }

  int axis_ = 1;
  int64_t inputs_ = 0;
};

}  // namespace
REGISTER_LAYER(CenterLoss, CenterLossLayer);
}  // namespace crema
