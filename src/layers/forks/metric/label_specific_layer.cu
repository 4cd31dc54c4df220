// LabelSpecificAdd, LabelSpecificRescale and LabelSpecificMargin (forks for faces): change the
// score of the labelled class, which makes it harder to reach.
//   LabelSpecificAdd: y = x + b where x > -b, for the label (AM-Softmax: b negative). With
//   bias_base b grows over time, from bias_min to bias_max:
//   bias_base + (1 + bias_gamma * i)^bias_power - 1.
//   LabelSpecificRescale: y = positive_weight * x for the label (plus 1 - positive_weight with
//   for_ip), y = negative_weight * x for the others.
//   LabelSpecificMargin: y = cos(acos(x) + margin) for the label, margin in degrees (ArcFace), at
//   most margin_max if the file gives one. It is the first value of the parameter, and with
//   margin_base grows in training: margin_base + (1 + gamma * i)^power - 1.
//   i: `iteration` plus the number of earlier forward passes. In testing y = x unless
//   transform_test, rescale_test or margin_on_test.
// Shapes: x (N, K), labels (N), integers from 0 to K - 1; y as x. A second top has b (1); that of
// LabelSpecificMargin (5) the margin, then zeros.
// Parameters: of LabelSpecificMargin a blob of 5, not learned, that starts with the margin.
// Gradient: dx = dy times dy/dx; none for labels.
#include "kernels/labels/labels.h"
#include "kernels/pointwise/pointwise.h"
#include "layers/detection/annealing.h"
#include "proto/layer.pb.h"
#include "proto/params/forks_face.pb.h"

namespace crema {
namespace {

enum class Change { none, add, rescale, turn };

// saved = base + (1 + gamma * i)^power - 1, clipped to minimum and maximum.
template <typename T>
struct Anneal {
  PassNumber passes;
  bool grows;
  double base, gamma, power, start, minimum, maximum;
  T *kept, *saved, *top;  // kept: the parameter, or null
  int tops;               // values of `top`
  CREMA_HD void operator()(int64_t) const {
    double value = kept ? static_cast<double>(*kept) : base;
    if (grows) value = base + pow(1 + gamma * (start + passes.get()), power) - 1;
    value = value < minimum ? minimum : value > maximum ? maximum : value;
    *saved = static_cast<T>(value);
    if (kept) *kept = *saved;
    for (int i = 0; i < tops; ++i) top[i] = i == 0 ? *saved : T(0);
  }
};

template <typename T>
struct Changed {
  Change change;
  const T* amount;
  T own, others, shift;  // factors of the label and the others, and offset of rescale

  CREMA_HD T value(T v, bool is_label) const {
    if (change == Change::rescale) return is_label ? own * v + shift : others * v;
    if (change == Change::none || !is_label) return v;
    const T a = *amount;
    if (change == Change::add) return v > -a ? v + a : v;
    const T angle = a * T(3.14159265358979323846 / 180);
    return a == 0 ? v : v * cos(angle) - sqrt(1 - v * v + T(1e-12)) * sin(angle);
  }
  CREMA_HD T slope(T v, bool is_label) const {
    if (change == Change::rescale) return is_label ? own : others;
    if (change != Change::turn || !is_label) return T(1);
    const T angle = *amount * T(3.14159265358979323846 / 180);
    return *amount == 0 ? T(1) : cos(angle) + v / sqrt(1 - v * v + T(1e-12)) * sin(angle);
  }
};

// kWidth classes per thread.
template <typename T, int kWidth>
struct ChangeValues {
  Changed<T> changed;
  ClassLabels<T> labels;
  LabelNote note;
  const T* x;
  T *kept, *y;  // kept: the labels, for backward
  CREMA_HD void operator()(int64_t n, int64_t piece) const {
    using P = Pack<T, kWidth>;
    const int label = labels.at(n);
    if (piece == 0) {
      kept[n] = labels.labels[n];
      if (label < 0) note.write(n, labels.labels[n]);
    }
    const int64_t k = piece * kWidth, i = n * labels.classes + k;
    P p = *reinterpret_cast<const P*>(x + i);
    for (int j = 0; j < kWidth; ++j)
      p.v[j] = label < 0 ? T(NAN) : changed.value(p.v[j], k + j == label);
    *reinterpret_cast<P*>(y + i) = p;
  }
};

template <typename T, int kWidth>
struct ChangeGradient {
  Changed<T> changed;
  ClassLabels<T> labels;
  const T *x, *dy;  // x: for angles only
  T* dx;
  CREMA_HD void operator()(int64_t n, int64_t piece) const {
    using P = Pack<T, kWidth>;
    const int label = labels.at(n);
    const int64_t k = piece * kWidth, i = n * labels.classes + k;
    P p = *reinterpret_cast<const P*>(dy + i);
    for (int j = 0; j < kWidth; ++j) {
      const bool is_label = k + j == label;
      const T v = changed.change == Change::turn && is_label ? x[i + j] : T(0);
      p.v[j] *= changed.slope(v, is_label);
    }
    *reinterpret_cast<P*>(dx + i) = p;
  }
};

class LabelSpecificLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::math,
                                       .keeps_channels = true,
                                       .labels = LabelKind::scored,
                                       .in_use = InUse::bypassed};

  enum class Variant { add, rescale, margin };
  explicit LabelSpecificLayer(Variant variant = Variant::add) : variant_(variant) {}

 private:
  const LabelSpecificAddParameter& add() const { return params<LabelSpecificAddParameter>(); }
  const LabelSpecificRescaleParameter& scale() const {
    return params<LabelSpecificRescaleParameter>();
  }
  const LabelSpecificMarginParameter& margin() const {
    return params<LabelSpecificMarginParameter>();
  }
  bool turns() const { return variant_ == Variant::margin; }
  bool adds() const { return variant_ == Variant::add; }
  Change change() const {
    if (turns()) return training() || margin().margin_on_test() ? Change::turn : Change::none;
    if (adds()) return training() || add().transform_test() ? Change::add : Change::none;
    return training() || scale().rescale_test() ? Change::rescale : Change::none;
  }

  Arity bottoms() const override { return {2, 2}; }
  Arity tops() const override { return {1, turns() || adds() ? 2 : 1}; }
  bool differentiable(int bottom) const override { return bottom == 0; }
  LayerTraits traits() const override {
    return {.in_place = !turns(), .reads = {turns(), false, true}, .changes_parameters = turns()};
  }

  void setup(Context&, const std::vector<Shape>&) override {
    if (!turns()) return;
    require(margin().type() == LabelSpecificMarginParameter::HARD && !margin().auto_tune(),
            "label_specific_margin_param: type SOFT and auto_tune are not supported");
    filler_.set_value(margin().margin_base());
    add_parameter({5}, filler_, false);
  }

  enum Saved { kAmount, kNote, kLabels };

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape& x = bottoms[0];
    require(x.axes() > 0 && bottoms[1].count() == x[0],
            "there must be one label for each of the "
            "vectors of ",
            x.brief(), ", but the labels are ", bottoms[1].brief());
    std::vector<Shape> tops = {x};
    if (message().top_size() > 1) tops.push_back({turns() ? 5 : 1});
    return {tops, {{{1}, {}}, {{LabelNote::kCount}, DType::i32, true}, {{x[0]}, {}}}};
  }

  template <typename T>
  Anneal<T> anneal(const Forward& pass) const {
    constexpr double kFar = 1e30;
    T *saved = pass.saved[kAmount].data<T>(),
      *top = pass.top.size() > 1 ? pass.top[1].data<T>() : nullptr;
    const int tops = pass.top.size() > 1 ? static_cast<int>(pass.top[1].count()) : 0;
    if (!turns()) {
      const LabelSpecificAddParameter& p = add();
      const bool grows = p.has_bias_base();
      return {PassNumber(pass),
              grows,
              grows ? p.bias_base() : p.bias(),
              p.bias_gamma(),
              p.bias_power(),
              static_cast<double>(p.iteration()),
              grows ? p.bias_min() : -kFar,
              grows ? p.bias_max() : kFar,
              nullptr,
              saved,
              top,
              tops};
    }
    const LabelSpecificMarginParameter& p = margin();
    return {PassNumber(pass),
            p.has_margin_base() && training(),
            p.margin_base(),
            p.gamma(),
            p.power(),
            static_cast<double>(p.iteration()),
            -kFar,
            p.has_margin_max() ? p.margin_max() : kFar,
            pass.parameters[0].data<T>(),
            saved,
            top,
            tops};
  }
  template <typename T>
  Changed<T> changed(const Tensor& amount) const {
    const T own = static_cast<T>(scale().positive_weight());
    return {change(), amount.data<T>(), own, static_cast<T>(scale().negative_weight()),
            scale().for_ip() ? 1 - own : T(0)};
  }

  // Calls body<T, width>() with the widest pack that the tensors allow, which a GPU needs.
  template <typename Body>
  static void with_width(Context& context, const Tensor& from, const Tensor& to, const Body& body) {
    on(from, [&]<typename T>() {
      const bool packs = context.device() == Device::gpu &&
                         takes_packs<T>(from.shape().count(1), from.raw(), to.raw());
      packs ? body.template operator()<T, kPackCount<T>>() : body.template operator()<T, 1>();
    });
  }

  void forward(Context& context, const Forward& pass) const override {
    const Tensor& x = pass.bottom[0];
    const int64_t classes = x.shape().count(1);
    check_labels(pass.bottom[1], classes, 1, std::nullopt);
    with_width(context, x, pass.top[0], [&]<typename T, int kWidth>() {
      parallel_for(context, 1, anneal<T>(pass));
      const LabelNote note{pass.saved[kNote].data<int32_t>(), classes, 1, pass.pass,
                           pass.live_pass};
      parallel_rows(context, x.shape()[0], classes / kWidth,
                    ChangeValues<T, kWidth>{changed<T>(pass.saved[kAmount]),
                                            {pass.bottom[1].data<T>(), classes},
                                            note,
                                            x.data<T>(),
                                            pass.saved[kLabels].data<T>(),
                                            pass.top[0].data<T>()});
    });
  }

  void backward(Context& context, const Backward& pass) const override {
    const Tensor& dx = pass.bottom_diff[0];
    if (!dx) return;
    const Tensor& dy = pass.top_diff[0];
    with_width(context, dy, dx, [&]<typename T, int kWidth>() {
      const int64_t classes = dx.shape().count(1);
      parallel_rows(context, dx.shape()[0], classes / kWidth,
                    ChangeGradient<T, kWidth>{changed<T>(pass.saved[kAmount]),
                                              {pass.saved[kLabels].data<T>(), classes},
                                              pass.bottom[0].data<T>(),
                                              dy.data<T>(),
                                              dx.data<T>()});
    });
  }

  void check(Context& context, const Forward& pass) const override {
    check_label_note(context, pass.saved[kNote]);
  }

  FillerParameter filler_;
  const Variant variant_;
};

}  // namespace
REGISTER_LAYER(LabelSpecificAdd, LabelSpecificLayer);
REGISTER_LAYER(LabelSpecificRescale, LabelSpecificLayer, LabelSpecificLayer::Variant::rescale);
REGISTER_LAYER(LabelSpecificMargin, LabelSpecificLayer, LabelSpecificLayer::Variant::margin);
}  // namespace crema
