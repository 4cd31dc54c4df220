// Yolov3DetectionOutput (forks): the objects that a YOLO version 3 detector found.
//   centre = (cell + sigmoid(x, y)) / S    size = biases * exp(w, h) / (S * anchors_scale)
//   score = sigmoid(score) * the largest of sigmoid(classes)
//   of an image's boxes above confidence_threshold and of all classes that overlap by nms_threshold
//   or more, the better one
// Shapes: mask_group_num maps, (N, num_box * (5 + num_classes), S, S) with an S each; bottom i has
// anchors_scale i and the boxes of `biases` that the i-th num_box values of mask name. The top is
// (1, 1, M, 7), for each object, an image's best first, image, class (from 1, 0 is background),
// score, left, top, right, bottom, the last four as shares of the image and not cut at its border;
// with none in any image N rows of image and -1. The fork gives all images the number 0 and lets
// them suppress each other's boxes.
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
    detector_.rule.least =
        std::nextafter(p().confidence_threshold(), std::numeric_limits<float>::max());
    detector_.rule.same = p().nms_threshold();
  }

  YoloScale scale(int map, int64_t boxes) const {
    YoloScale scale;
    scale.cell = static_cast<float>(p().anchors_scale(map));
    require(scale.cell > 0, "anchors_scale is 0, but a cell has pixels");
    for (int64_t n = 0; n < boxes; ++n) {
      const int64_t place = p().mask(static_cast<int>(map * boxes + n));
      require(place < p().biases_size() / 2, "mask names box ", place, ", but `biases` has ",
              p().biases_size() / 2, " boxes, counted from 0");
      const int box = static_cast<int>(place);
      scale.sizes.insert(scale.sizes.end(), {p().biases(2 * box), p().biases(2 * box + 1)});
    }
    return scale;
  }
};

}  // namespace
REGISTER_LAYER(Yolov3DetectionOutput, Yolov3DetectionOutputLayer);
}  // namespace crema
