// DetectionAccuracy: accuracy of the classes and boxes of one map of MS-CNN.
//   y_0 = fraction of positions with their class among the top_k scores, y_1 the same for objects
//   z   = mean overlap of the boxes predicted for objects with these objects
//   Positions with the label ignore_label of loss_param do not count, nor does background that
//   overlaps an object by bg_threshold or more. Boxes are decoded as in BoxOutput, not clipped. A
//   value without counted positions is -1.
// Shapes: predictions (N, cls_num + 4, H, W), targets (N, 6, H, W) of ImageGtData; tops y (1, 1, 1,
// 2) and z (1, 1, 1, 1).
// Parameters: none.
// Gradient: none.
#include "kernels/reduce/reduce.h"
#include "layers/detection/field_boxes.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"
#include "tensor/on.h"

namespace crema {
namespace {

enum FieldCount { counted, right, objects, objects_right, overlaps };
constexpr int kFieldCounts = 5;

template <typename T>
struct FieldAccuracyTerm {
  FieldTargets<T> targets;
  FieldBoxes fields;
  const T* x;
  int64_t classes, width, top_k;

  CREMA_HD bool is_right(const T* scores, int label) const {
    const T own = scores[label * targets.positions];
    int64_t better = 0;
    for (int64_t k = 0; k < classes; ++k) {
      const T other = scores[k * targets.positions];
      better += other > own || (other == own && k > label) ? 1 : 0;
    }
    return better < top_k;
  }

  template <typename>
  CREMA_HD T operator()(int64_t sum, int64_t image, int64_t position) const {
    const int label = targets.label(image, position);
    const bool object = targets.is_object(label);
    if (!object && !targets.is_background(image, position)) return T(0);
    if (sum == counted) return T(1);
    if (sum == objects) return object ? T(1) : T(0);
    if (sum != right && !object) return T(0);
    const T* at = x + image * (classes + 4) * targets.positions + position;
    if (sum != overlaps) return label >= 0 && label < classes && is_right(at, label) ? T(1) : T(0);
    const Box box = fields.box(at + classes * targets.positions, targets.positions,
                               position / width, position % width);
    const auto target = [&](int channel) {
      return static_cast<float>(targets.at(image, channel, position));
    };
    const float half_width = target(3) / 2, half_height = target(4) / 2;
    return overlap(box, {target(1) - half_width, target(2) - half_height, target(1) + half_width,
                         target(2) + half_height});
  }
};

template <typename T>
struct FieldShares {
  const T* sums;
  T *y, *z;  // z may be null
  CREMA_HD static T share(T part, T whole) { return whole > 0 ? part / whole : T(-1); }
  CREMA_HD void operator()(int64_t) const {
    y[0] = share(sums[right], sums[counted]);
    y[1] = share(sums[objects_right], sums[objects]);
    if (z) z[0] = share(sums[overlaps], sums[objects]);
  }
};

class DetectionAccuracyLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::metric};

 private:
  const DetectionAccuracyParameter& p() const { return params<DetectionAccuracyParameter>(); }
  Arity bottoms() const override { return {2, 2}; }
  Arity tops() const override { return {1, 2}; }
  bool differentiable(int) const override { return false; }
  LayerTraits traits() const override { return {.reads = {false, false}}; }

  FieldBoxes fields() const { return field_boxes(p(), params<BBoxRegParameter>()); }
  void setup(Context&, const std::vector<Shape>&) override {
    fields();
    require(p().top_k() > 0 && p().top_k() <= p().cls_num(), "top_k is ", p().top_k(),
            ", but must be from 1 to cls_num, ", p().cls_num());
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    check_field_maps(p(), bottoms[0], bottoms[1]);
    std::vector<Shape> tops = {{1, 1, 1, 2}};
    if (message().top_size() > 1) tops.push_back({1, 1, 1, 1});
    return {tops, {{{kFieldCounts}, {}}}};
  }

  void forward(Context& context, const Forward& pass) const override {
    const Shape& shape = pass.bottom[0].shape();
    const auto& loss = params<LossParameter>();
    on(pass.bottom[0], [&]<typename T>() {
      const FieldAccuracyTerm<T> term{
          {pass.bottom[1].data<T>(), shape.count(2), static_cast<T>(p().bg_threshold()),
           p().objectness(), loss.has_ignore_label(), loss.ignore_label()},
          fields(),
          pass.bottom[0].data<T>(),
          p().cls_num(),
          shape[3],
          p().top_k()};
      T* sums = pass.saved[0].data<T>();
      parallel_sum<T>(context, {kFieldCounts, shape[0], shape.count(2)}, term, {sums});
      T* z = pass.top.size() > 1 ? pass.top[1].data<T>() : nullptr;
      parallel_for(context, 1, FieldShares<T>{sums, pass.top[0].data<T>(), z});
    });
  }
};

}  // namespace
REGISTER_LAYER(DetectionAccuracy, DetectionAccuracyLayer);
}  // namespace crema
