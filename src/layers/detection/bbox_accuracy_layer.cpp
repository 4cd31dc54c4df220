// BboxAccuracy: how much box regression improves the overlap of boxes with their objects.
//   y0 = mean overlap of decode(region, bbox_std * prediction + bbox_mean) with the object
//   y1 = mean overlap of the region itself
// over the regions that have an object, except those that overlap it by more than 0.975, which were
// made from it; -1 if there are none.
// Shapes: predictions (R, 4*K, ...), those of the object's class, or with cls_aware: false of class
// 1; regions (R, 5, ...) of image and first and last pixels; objects (R, 6, ...) of class (0:
// none), box and overlap. Tops: y0 and y1, (1, 1, 1, 1).
// Parameters: none.
// Gradient: none.
#include "layers/detection/box_regression.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"

namespace crema {
namespace {

constexpr float kTheObjectItself = 0.975f;

class BboxAccuracyLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::metric};

 private:
  const BBoxRegParameter& p() const { return params<BBoxRegParameter>(); }
  Arity bottoms() const override { return {3, 3}; }
  Arity tops() const override { return {1, 2}; }
  bool differentiable(int) const override { return false; }
  LayerTraits traits() const override { return {.reads = {false, false}, .works_on_host = true}; }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape &predictions = bottoms[0], &regions = bottoms[1], &objects = bottoms[2];
    require(predictions.axes() >= 2 && predictions.count(1) >= 8 && predictions.count(1) % 4 == 0,
            "the predictions are ", predictions.brief(),
            ", but must have 4 numbers for the background and for each class");
    require(regions.axes() >= 2 && regions[0] == predictions[0] && regions.count(1) == 5,
            "the regions are ", regions.brief(), ", but must be ", predictions[0], "x5");
    require(objects.axes() >= 2 && objects[0] == predictions[0] && objects.count(1) == 6,
            "the objects are ", objects.brief(), ", but must be ", predictions[0], "x6");
    return {std::vector<Shape>(message().top_size(), Shape{1, 1, 1, 1}), {}};
  }

  void forward(Context& context, const Forward& pass) const override {
    const BoxRegression regression(p());
    const std::vector<float> predictions = to_floats(context, pass.bottom[0]),
                             regions = to_floats(context, pass.bottom[1]),
                             objects = to_floats(context, pass.bottom[2]);
    const int64_t numbers = pass.bottom[0].shape().count(1);
    double after = 0, before = 0;
    int64_t count = 0;
    for (int64_t i = 0; i < pass.bottom[0].shape()[0]; ++i) {
      const float* object = objects.data() + i * 6;
      const auto label = static_cast<int64_t>(object[0]);
      if (label <= 0 || object[5] > kTheObjectItself) continue;
      const int64_t at = p().cls_aware() ? label : 1;
      require(4 * at < numbers, "region ", i, " has class ", label,
              ", but there are predictions for ", numbers / 4 - 1, " classes");
      const Box goal = edges_of(object + 1), region = edges_of(regions.data() + i * 5 + 1);
      const float* code = predictions.data() + i * numbers + 4 * at;
      after += overlap(regression.decoded(region, code), goal);
      before += overlap(region, goal);
      ++count;
    }
    const auto mean = [&](double sum) {
      return count > 0 ? static_cast<float>(sum / static_cast<double>(count)) : -1.f;
    };
    const float means[] = {mean(after), mean(before)};
    for (size_t j = 0; j < pass.top.size(); ++j) from_floats(context, means + j, pass.top[j]);
  }
};

}  // namespace
REGISTER_LAYER(BboxAccuracy, BboxAccuracyLayer);
}  // namespace crema
