// YoloDetectionOutput (forks): the detected objects of a YOLO version 2 detector.
//   centre = (cell + sigmoid(x, y)) / S    size = biases * exp(w, h) / S
//   score = sigmoid(score) * maximum of softmax(classes)
//   NMS with nms_threshold (which already suppresses at equality) across all classes, of an image's
//   boxes of at least confidence_threshold
// Shapes: one map or two with the same boxes, (N, num_box * (5 + num_classes), S, S); S may differ.
// The top is (1, 1, M, 7), for each object, an image's best first, image, class (from 1, 0 is
// background), score, left, top, right, bottom, the last four relative to the image and not
// clipped; if no image has any, N rows of image and -1. The forks give all images the index 0 and
// let them suppress each other's boxes.
// Parameters: none.
// Gradient: none.
#include "base/error.h"
#include "layers/detection/yolo_detections.h"
#include "proto/params/forks_yolo.pb.h"

namespace crema {
namespace {

class YoloDetectionOutputLayer : public YoloOutputLayer {
  const YoloDetectionOutputParameter& p() const { return params<YoloDetectionOutputParameter>(); }
  Arity bottoms() const override { return {1, 2}; }

  void setup(Context&, const std::vector<Shape>& bottoms) override {
    require(p().has_num_classes() && p().num_classes() > 0,
            "yolo_detection_output_param needs num_classes: how many, without the background?");
    require(p().coords() == 4, "coords is ", p().coords(), ", but a box has 4");
    require(p().num_box() > 0 && p().biases_size() >= 2 * int64_t{p().num_box()},
            "yolo_detection_output_param needs `biases`, width and height of each of num_box: ",
            p().num_box(), " boxes, but has ", p().biases_size(), " values");
    check_overlap("nms_threshold", p().nms_threshold());
    const std::vector<float> sizes(p().biases().begin(), p().biases().begin() + 2 * p().num_box());
    detector_.scales.assign(bottoms.size(), {sizes, 1});
    detector_.rule.classes = p().num_classes();
    detector_.rule.minimum = p().confidence_threshold();
    detector_.rule.same = p().nms_threshold();
  }
};

}  // namespace
REGISTER_LAYER(YoloDetectionOutput, YoloDetectionOutputLayer);
}  // namespace crema
