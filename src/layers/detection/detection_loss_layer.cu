// DetectionLoss: the loss of one map of MS-CNN, for classes and boxes together.
//   loss = 1 / P * sum of w * -log(softmax(scores)[class]) + lambda / (4 K) * sum of f(z)
//   P positions count: those of the K objects, and background that overlaps objects by less than
//   bg_threshold, of which sample_mode selects, per image: "random": as many as there are objects,
//   times bg_multiple, at least 4 per class; "bootstrap": as many for each class, at least 4, with
//   its largest scores; "mixture": half of each; "all": all of it. Positions with loss_param's
//   ignore_label do not count.
//   w = 1, with iou_weighted the overlap for objects; with pos_neg_weighted scaled so that objects
//   have 1 / (1 + bg_multiple) of the sum, P, and background the rest
//   z = prediction, limited by 1 / field_xyr and log(field_whr), minus the target, which is
//   ((centre - field's) / field's size, log(size / field's size)), less bbox_mean, over bbox_std
//   f = z^2 / 2, with bb_smooth |z| - 1/2 where |z| is above 1
// Shapes: predictions (N, cls_num + 4, H, W), targets (N, 6, H, W) of ImageGtData; the top (1, 1,
// 1, 2) is the loss and its box part alone.
// Parameters: none.
// Gradient: of the top's first value only, though both are in the displayed sum; it ignores the
// limits of z. None for the targets.
#include <algorithm>

#include "kernels/pointwise/batch_values.h"
#include "kernels/pointwise/pointwise.h"
#include "kernels/pointwise/pointwise_math.h"
#include "kernels/reduce/reduce.h"
#include "layers/detection/field_sampling.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"
#include "tensor/on.h"

namespace crema {
namespace {

template <typename T>
struct FieldLossTerm {
  FieldTargets<T> targets;
  FieldBoxes fields;
  const T* x;
  const T *class_weights, *box_weights;  // per position; 0: does not count
  int64_t classes, width;
  bool smooth;

  CREMA_HD const T* at(int64_t image, int64_t position) const {
    return x + image * (classes + 4) * targets.positions + position;
  }

  // Maximum score and the sum of exp(score - maximum).
  CREMA_HD void sums(const T* scores, T* largest, T* sum) const {
    *largest = scores[0];
    for (int64_t k = 1; k < classes; ++k) {
      const T score = scores[k * targets.positions];
      *largest = score > *largest ? score : *largest;
    }
    *sum = 0;
    for (int64_t k = 0; k < classes; ++k) *sum += exp_of(scores[k * targets.positions] - *largest);
  }

  CREMA_HD T class_loss(int64_t image, int64_t position) const {
    const T weight = class_weights[image * targets.positions + position];
    if (weight == 0) return T(0);
    const T* scores = at(image, position);
    const int label = targets.label(image, position);
    if (label < 0 || label >= classes) return T(NAN);
    T largest, sum;
    sums(scores, &largest, &sum);
    const T cost = log(sum) + largest - scores[label * targets.positions];
    return weight * (cost < T(87.3365) ? cost : T(87.3365));
  }

  // Coordinate k of a box: prediction minus target.
  CREMA_HD T difference(int64_t image, int64_t position, int k) const {
    const T target = targets.at(image, k + 1, position);
    const int64_t along = k == 0 ? position % width : position / width;
    const T size = static_cast<T>(k % 2 == 0 ? fields.width : fields.height);
    const T code = k < 2 ? (target - static_cast<T>(fields.middle(along))) / size
                         : log((target < 2 ? T(2) : target) / size);
    const T mean = static_cast<T>(fields.mean[k]), deviation = static_cast<T>(fields.deviation[k]);
    // Both coordinates of a pair have the same limits, as in the fork.
    const int pair = k / 2 * 2;
    const T middle = static_cast<T>((fields.mean[pair] + fields.mean[pair + 1]) / 2),
            spread = static_cast<T>(sqrtf(fields.deviation[pair] * fields.deviation[pair + 1])),
            limit = static_cast<T>(k < 2 ? fields.max_shift : fields.max_log);
    const T value = at(image, position)[(classes + k) * targets.positions];
    return fields.within(value, (-limit - middle) / spread, (limit - middle) / spread) -
           (code - mean) / deviation;
  }

  CREMA_HD T box_loss(int64_t image, int64_t position) const {
    const T weight = box_weights[image * targets.positions + position];
    T sum = 0;
    if (weight == 0) return sum;
    for (int k = 0; k < 4; ++k) {
      const T z = difference(image, position, k), size = z < 0 ? -z : z;
      sum += !smooth || size < 1 ? z * z / 2 : size - T(0.5);
    }
    return weight * sum;
  }

  // Sum 0 is the loss, sum 1 its box part.
  template <typename>
  CREMA_HD T operator()(int64_t which, int64_t image, int64_t position) const {
    return (which == 0 ? class_loss(image, position) : T(0)) + box_loss(image, position);
  }
};

template <typename T>
struct FieldLossGradient {
  FieldLossTerm<T> term;
  const T* top;
  T* dx;
  CREMA_HD void operator()(int64_t image, int64_t position) const {
    const int64_t positions = term.targets.positions, classes = term.classes;
    T* out = dx + image * (classes + 4) * positions + position;
    const T weight = term.class_weights[image * positions + position] * top[0],
            box_weight = term.box_weights[image * positions + position] * top[0];
    const T* scores = term.at(image, position);
    T largest, sum;
    term.sums(scores, &largest, &sum);
    const int label = term.targets.label(image, position);
    for (int64_t k = 0; k < classes; ++k) {
      const T p = exp_of(scores[k * positions] - largest) / sum;
      out[k * positions] = weight == 0 ? T(0) : weight * (p - (k == label ? T(1) : T(0)));
    }
    for (int k = 0; k < 4; ++k) {
      T slope = box_weight == 0 ? T(0) : term.difference(image, position, k);
      if (term.smooth) slope = term.fields.within(slope, T(-1), T(1));
      out[(classes + k) * positions] = box_weight * slope;
    }
  }
};

class DetectionLossLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::loss};

 private:
  const DetectionLossParameter& p() const { return params<DetectionLossParameter>(); }
  Arity bottoms() const override { return {2, 2}; }
  bool is_loss() const override { return true; }
  LayerTraits traits() const override { return {.reads = {true, false}}; }
  bool differentiable(int bottom) const override { return bottom == 0; }

  LossParts loss_parts(const std::vector<Shape>&) const override {
    return LossParts::none(
        "it divides by the number of positions that count, and each rank sees only its own part of "
        "them; train with -batch_mode per_gpu");
  }

  FieldBoxes fields() const { return field_boxes(p(), params<BBoxRegParameter>()); }
  void setup(Context&, const std::vector<Shape>&) override {
    require(p().has_cls_num(),
            "detection_loss_param needs cls_num, the number of classes with "
            "background; the DetectionLoss of YOLO version 1 is not supported");
    fields();
    const std::string& mode = p().sample_mode();
    const std::vector<std::string> modes = {"random", "bootstrap", "mixture", "all"};
    require(std::find(modes.begin(), modes.end(), mode) != modes.end(), "unknown sample_mode \"",
            mode, "\"", did_you_mean(mode, modes),
            "; there are random, bootstrap, mixture and all");
  }

  // The weights of each position's class loss and box loss.
  enum Saved { kClassWeights, kBoxWeights, kNote };

  Inference infer(const std::vector<Shape>& bottoms) const override {
    check_field_maps(p(), bottoms[0], bottoms[1]);
    const Shape positions{bottoms[0][0], bottoms[0].count(2)};
    return {{{1, 1, 1, 2}},
            {{positions, {}}, {positions, {}}, {{LabelNote::kCount}, DType::i32, true}}};
  }

  Prepared prepare(Context&, const Preparation& preparation) const override {
    const Shape& shape = preparation.bottoms[0];
    Prepared prepared;
    prepared.workspace =
        field_sampling_workspace(shape[0], p().cls_num(), shape.count(2), preparation.dtype);
    return prepared;
  }

  FieldSampling sampling() const {
    const std::string& mode = p().sample_mode();
    const auto multiple = static_cast<float>(p().bg_multiple());
    FieldSampling sampling;
    sampling.all = mode == "all";
    sampling.drawn = mode == "random" || mode == "mixture";
    sampling.hardest = mode == "bootstrap" || mode == "mixture";
    sampling.multiple = mode == "mixture" ? multiple / 2 : multiple;
    sampling.by_overlap = p().iou_weighted();
    sampling.balanced = p().pos_neg_weighted();
    sampling.background_share = 1 - 1.0 / (1 + p().bg_multiple());
    sampling.box_factor = p().lambda() / 4.0;
    return sampling;
  }

  template <typename T>
  FieldTargets<T> targets(const T* data, const Shape& shape) const {
    const auto& loss = params<LossParameter>();
    return {data,
            shape.count(2),
            static_cast<T>(p().bg_threshold()),
            p().objectness(),
            loss.has_ignore_label(),
            loss.ignore_label()};
  }

  template <typename T>
  FieldLossTerm<T> term(const std::vector<Tensor>& bottom, const std::vector<Tensor>& saved) const {
    const Shape& shape = bottom[0].shape();
    return {targets(bottom[1].data<T>(), shape),
            fields(),
            bottom[0].data<T>(),
            saved[kClassWeights].data<T>(),
            saved[kBoxWeights].data<T>(),
            p().cls_num(),
            shape[3],
            p().bb_smooth()};
  }

  // For the CPU; a GPU notes the error.
  template <typename T>
  void check_targets(const FieldTargets<T>& t, int64_t images) const {
    const auto classes = static_cast<int64_t>(p().cls_num());
    for (int64_t i = 0; i < images * t.positions; ++i) {
      const int label = t.label(i / t.positions, i % t.positions);
      require(!t.is_object(label) || (label > 0 && label < classes), "a target has the class ",
              label, ", but must have 0 to ", classes - 1);
    }
  }

  void forward(Context& context, const Forward& pass) const override {
    const Shape& shape = pass.bottom[0].shape();
    const int64_t images = shape[0], classes = p().cls_num();
    on(pass.bottom[0], [&]<typename T>() {
      const FieldLossTerm<T> sum = term<T>(pass.bottom, pass.saved);
      if (context.device() == Device::cpu) check_targets(sum.targets, images);
      const LabelNote note{pass.saved[kNote].data<int32_t>(), classes, sum.targets.positions,
                           pass.pass, pass.live_pass};
      sample_fields<T>(context, sampling(), sum.targets, images, classes, sum.x, note,
                       {{},
                        context.random(0).seed,
                        id(),
                        pass.pass,
                        pass.live_pass,
                        values_before(pass.share, images),
                        nullptr},
                       pass.workspace.data<char>(), pass.saved[kClassWeights].data<T>(),
                       pass.saved[kBoxWeights].data<T>());
      parallel_sum<T>(context, {2, images, sum.targets.positions}, sum, {pass.top[0].data<T>()});
    });
  }

  void backward(Context& context, const Backward& pass) const override {
    const Shape& shape = pass.bottom[0].shape();
    on(pass.bottom[0], [&]<typename T>() {
      parallel_rows(
          context, shape[0], shape.count(2),
          FieldLossGradient<T>{term<T>(pass.bottom, pass.saved), pass.top_diff[0].data<T>(),
                               pass.bottom_diff[0].data<T>()});
    });
  }

  void check(Context& context, const Forward& pass) const override {
    check_label_note(context, pass.saved[kNote]);
  }
};

}  // namespace
REGISTER_LAYER(DetectionLoss, DetectionLossLayer);
}  // namespace crema
