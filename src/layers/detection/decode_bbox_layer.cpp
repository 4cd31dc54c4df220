// DecodeBBox: moves regions to the object predicted by a detector's box regression (the next stage
// of a cascade).
//   region' = decode(region, bbox_std * prediction + bbox_mean)
//   with the prediction of the object class: values 4 to 7
// In phase TRAIN drops regions whose corners come out in the wrong order, and with a third bottom
// those that overlap their object by 0.95 or more, because they were made from it.
// Shapes: predictions (R, 8, ...), regions (R, 5, ...) of image and first and last pixels, matched
// objects (R, 6, ...) of class, box and overlap; the top is (M, 5, 1, 1) with M up to R, depending
// on the data.
// Parameters: none.
// Gradient: none.
#include "layers/detection/box_regression.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"
#include "tensor/part.h"

namespace crema {
namespace {

constexpr int kNumbers = 8, kRegion = 5;
constexpr float kOwnOverlap = 0.95f;

class DecodeBboxLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::detection};

 private:
  Arity bottoms() const override { return {2, 3}; }
  bool differentiable(int) const override { return false; }
  LayerTraits traits() const override {
    return {.dynamic = true, .reads = {false, false}, .works_on_host = true};
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const int64_t wanted[] = {kNumbers, kRegion, 6};
    const char* names[] = {"predictions", "regions", "matched objects"};
    for (size_t i = 0; i < bottoms.size(); ++i) {
      require(bottoms[i].axes() >= 2 && bottoms[i][0] == bottoms[0][0] &&
                  bottoms[i].count(1) == wanted[i],
              "the ", names[i], " are ", bottoms[i].brief(), ", but must have ", wanted[i],
              " numbers for each region, as many regions as predictions");
    }
    require(bottoms.size() < 3 || training(),
            "matched objects, the third bottom, are for phase TRAIN only");
    return {{{bottoms[0][0], kRegion, 1, 1}}, {}};
  }

  void forward(Context& context, const Forward& pass) const override {
    const BoxRegression regression(params<BBoxRegParameter>());
    const std::vector<float> predictions = to_floats(context, pass.bottom[0]),
                             regions = to_floats(context, pass.bottom[1]);
    std::vector<float> objects, rows;
    if (pass.bottom.size() > 2) objects = to_floats(context, pass.bottom[2]);
    for (int64_t i = 0; i < pass.bottom[0].shape()[0]; ++i) {
      const float* region = regions.data() + i * kRegion;
      const Box box = pixels_of(
          regression.decoded(edges_of(region + 1), predictions.data() + i * kNumbers + 4));
      if (training() && (box.x1 > box.x2 || box.y1 > box.y2)) continue;
      if (!objects.empty() && objects[i * 6 + 5] >= kOwnOverlap) continue;
      rows.insert(rows.end(), {region[0], box.x1, box.y1, box.x2, box.y2});
    }
    const Shape top{static_cast<int64_t>(rows.size()) / kRegion, kRegion, 1, 1};
    from_floats(context, rows.data(), part(pass.top[0], top));
    state_of<DynamicTops>(pass).tops = {top};
  }
};

}  // namespace
REGISTER_LAYER(DecodeBBox, DecodeBboxLayer);
}  // namespace crema
