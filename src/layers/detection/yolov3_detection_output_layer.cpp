// Yolov3DetectionOutput (forks): the detected objects of a YOLO version 3 detector.
//   centre = (cell + sigmoid(x, y)) / S    size = biases * exp(w, h) / (S * anchors_scale)
//   score = sigmoid(score) * maximum of sigmoid(classes)
//   NMS with nms_threshold (which already suppresses at equality) across all classes, of an image's
//   boxes above confidence_threshold
// Shapes: mask_group_num maps, (N, num_box * (5 + num_classes), S, S) each with its own S; bottom i
// has anchors_scale i and the boxes of `biases` that the i-th num_box values of mask name. The top
// is (1, 1, M, 7), for each object, an image's best first, image, class (from 1, 0 is background),
// score, left, top, right, bottom, the last four relative to the image and not clipped; if no image
// has any, N rows of image and -1. The fork gives all images the index 0 and lets them suppress
// each other's boxes.
// Parameters: none.
// Gradient: none.
#include <cmath>
#include <limits>

#include "base/error.h"
#include "layers/detection/yolo_detections.h"
#include "proto/params/forks_yolo.pb.h"

namespace crema {
namespace {

class Yolov3DetectionOutputLayer : public YoloOutputLayer {
  const Yolov3DetectionOutputParameter& p() const {
    return params<Yolov3DetectionOutputParameter>();
  }
  Arity bottoms() const override { return {1, -1}; }

  void setup(Context&, const std::vector<Shape>& bottoms) override {
    require(p().has_num_classes() && p().num_classes() > 0,
            "yolov3_detection_output_param needs num_classes: how many, without the background?");
    check_overlap("nms_threshold", p().nms_threshold());
    const int maps = static_cast<int>(bottoms.size());
    const int64_t boxes = p().num_box();
    require(int64_t{p().mask_group_num()} == maps, "mask_group_num is ", p().mask_group_num(),
            ", but there are ", maps, " bottoms");
    require(p().mask_size() == maps * boxes, "`mask` must name num_box: ", boxes,
            " boxes for each of ", maps, " bottoms, but has ", p().mask_size(), " values");
    require(p().anchors_scale_size() >= maps,
            "anchors_scale must say the pixels a cell of each of ", maps, " bottoms, but has ",
            p().anchors_scale_size(), " values");
    require(p().biases_size() % 2 == 0, "`biases` must have width and height of each box, but has ",
            p().biases_size(), " values");
    for (int i = 0; i < maps; ++i) detector_.scales.push_back(scale(i, boxes));
    detector_.rule.classes = p().num_classes();
    detector_.rule.function = YoloRule::Classes::logistic;
    detector_.rule.minimum =
        std::nextafter(p().confidence_threshold(), std::numeric_limits<float>::max());
    detector_.rule.same = p().nms_threshold();
  }

  YoloScale scale(int map, int64_t boxes) const {
    YoloScale scale;
    scale.cell = static_cast<float>(p().anchors_scale(map));
    require(scale.cell > 0, "anchors_scale is 0, but a cell has pixels");
    for (int64_t n = 0; n < boxes; ++n) {
      const int64_t position = p().mask(static_cast<int>(map * boxes + n));
      require(position < p().biases_size() / 2, "mask names box ", position, ", but `biases` has ",
              p().biases_size() / 2, " boxes, counted from 0");
      const int box = static_cast<int>(position);
      scale.sizes.insert(scale.sizes.end(), {p().biases(2 * box), p().biases(2 * box + 1)});
    }
    return scale;
  }
};

}  // namespace
REGISTER_LAYER(Yolov3DetectionOutput, Yolov3DetectionOutputLayer);
}  // namespace crema
