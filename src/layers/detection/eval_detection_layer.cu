// EvalDetection (forks): which detections of a YOLO version 2 detector find an object, for average
// precision.
//   boxes, classes and scores as in YoloDetectionOutput; score_type selects the score for ranking:
//   the box's (OBJ), its class's (PROB) or their product
//   if nms is at least 0: NMS across all classes, at an overlap of nms or more, of boxes that
//   score at least 0.005
// Within an image and class, detections are ordered by score. One is right if no earlier one found
// the object that it overlaps most, by at least threshold. (Some forks count one that overlaps too
// little neither right nor wrong.) Difficult objects count, too.
// Shapes: x (N, num_object * (5 + num_class), S, S); objects (N, ...) of rows (class, x, y, width,
// height), ended by the first x = 0, or (1, 1, G, 8) of AnnotatedData, whose classes count from 1,
// image -1: unused; a third bottom is not read. The top is (N, num_class + 4 * num_object * S * S):
// number of objects per class, then for each detection class (from 0), score, whether it is right
// (1 or 0), whether it is wrong (1 or 0); the rest is 0.
// Parameters: none.
// Gradient: none.
#include "kernels/core/threads.h"
#include "layers/detection/box_matching.h"
#include "layers/detection/yolo_boxes.h"
#include "layers/detection/yolo_detections.h"
#include "proto/params/forks_yolo.pb.h"

namespace crema {
namespace {

constexpr float kMinScore = 0.005f;

class EvalDetectionLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::metric};

 private:
  const EvalDetectionParameter& p() const { return params<EvalDetectionParameter>(); }
  Arity bottoms() const override { return {2, 3}; }
  bool differentiable(int) const override { return false; }
  LayerTraits traits() const override { return {.reads = {false, false}, .works_on_host = true}; }

  void setup(Context&, const std::vector<Shape>&) override {
    require(p().num_class() > 0, "eval_detection_param needs num_class above 0");
    require(p().num_object() > 0 && p().biases_size() >= 2 * int64_t{p().num_object()},
            "eval_detection_param needs `biases`, width and height of each of num_object: ",
            p().num_object(), " boxes, but has ", p().biases_size(),
            " values; YOLO version 1, which has none, is not supported");
    require(p().nms() <= 1, "nms is ", p().nms(), ", but an overlap is 0 to 1, and negative: none");
    const std::vector<float> sizes(p().biases().begin(),
                                   p().biases().begin() + 2 * p().num_object());
    detector_.scales = {{sizes, 1}};
    YoloRule& rule = detector_.rule;
    rule.classes = classes_ = p().num_class();
    rule.score = p().score_type() == EvalDetectionParameter::OBJ    ? YoloRule::Score::object
                 : p().score_type() == EvalDetectionParameter::PROB ? YoloRule::Score::probability
                                                                    : YoloRule::Score::product;
    rule.suppress = p().nms() >= 0;
    rule.same = p().nms();
    rule.minimum = rule.suppress ? kMinScore : 0;
  }

  static bool annotated(const Shape& objects) {
    return objects.axes() > 0 && objects[objects.axes() - 1] == 8;
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape& x = bottoms[0];
    const int64_t boxes = detector_.boxes({x});
    if (!annotated(bottoms[1])) check_object_rows(bottoms[1], x[0]);
    return {{{x[0], classes_ + 4 * boxes}}, {}};
  }

  struct State : LayerState {
    Tensor sizes;  // YoloDetector::sizes()
  };

  Prepared prepare(Context& context, const Preparation& preparation) const override {
    Prepared prepared;
    prepared.make_state<State>().sizes = detector_.sizes(context, preparation.dtype);
    prepared.workspace = detector_.workspace(context, {preparation.bottoms[0]});
    return prepared;
  }

  // The objects of each image, with classes counted from 0.
  std::vector<std::vector<Object>> objects_of(const std::vector<float>& rows, const Shape& shape,
                                              int64_t images) const {
    std::vector<std::vector<Object>> all(images);
    if (annotated(shape)) {
      const ObjectRule rule{static_cast<int>(classes_) + 1, 0, true};
      for (auto& [image, objects] : read_objects(rows, rule)) {
        require(image >= 0 && image < images, "an object is of image ", image,
                ", but the batch has ", images);
        all[image] = objects;
        for (Object& object : all[image]) --object.label;
      }
      return all;
    }
    const Objects<float> table{rows.data(), shape.count() / (5 * images)};
    check_objects(table, images, classes_);
    for (int64_t n = 0; n < images; ++n) {
      for (int64_t t = 0; !table.ends(n, t); ++t) {
        const float* row = table.row(n, t);
        const float w = row[3] / 2, h = row[4] / 2;
        all[n].push_back(
            {{row[1] - w, row[2] - h, row[1] + w, row[2] + h}, static_cast<int>(row[0])});
      }
    }
    return all;
  }

  void forward(Context& context, const Forward& pass) const override {
    const int64_t images = pass.bottom[0].shape()[0];
    const std::vector<std::vector<Object>> objects =
        objects_of(to_floats(context, pass.bottom[1]), pass.bottom[1].shape(), images);
    const std::vector<std::vector<Detection>> found = copy_detections(
        context,
        detector_.detect(context, {pass.bottom[0]}, state_of<State>(pass).sizes, pass.workspace));
    std::vector<float> top(pass.top[0].count(), 0);
    const int64_t each = pass.top[0].shape().count(1);
    RegionError error;
#pragma omp parallel for if (images > 1)
    for (int64_t n = 0; n < images; ++n) {
      error.run([&] { evaluate(found[n], objects[n], top.data() + n * each); });
    }
    error.rethrow();
    from_floats(context, top.data(), pass.top[0]);
  }

  void evaluate(const std::vector<Detection>& found, const std::vector<Object>& objects,
                float* row) const {
    for (const Object& object : objects) row[object.label] += 1;
    float* next = row + classes_;
    for (int label = 0; label < classes_; ++label) {
      std::vector<Box> boxes;
      std::vector<float> scores;
      for (const Detection& d : found) {
        if (d.label != label) continue;
        boxes.push_back(d.box);
        scores.push_back(d.score);
      }
      std::vector<Object> of_class;
      for (const Object& object : objects)
        if (object.label == label) of_class.push_back(object);
      const std::vector<Verdict> verdicts = judge(boxes, of_class, {p().threshold()});
      for (size_t i = 0; i < verdicts.size(); ++i) {
        *next++ = static_cast<float>(label);
        *next++ = scores[i];
        *next++ = verdicts[i].right;
        *next++ = verdicts[i].wrong;
      }
    }
  }

  YoloDetector detector_;
  int64_t classes_ = 0;
};

}  // namespace
REGISTER_LAYER(EvalDetection, EvalDetectionLayer);
}  // namespace crema
