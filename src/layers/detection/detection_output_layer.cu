// DetectionOutput: SSD's detected objects, from its predictions.
//   box = decode(prior, prediction) as code_type says: CORNER, CENTER_SIZE or CORNER_SIZE
//   for each class but the background: the nms_param.top_k best boxes with scores above
//   confidence_threshold, then NMS with nms_threshold; of all classes together an image's
//   keep_top_k best
// With clip: true (OpenCV), boxes are clipped to the image before that.
// With nms_param.eta below 1, each box kept multiplies a threshold above 0.5 by eta.
// Shapes: predictions (N, P*L*4) for P priors and L = 1 box for all classes (share_location) or one
// per class; scores (N, P*num_classes); priors (1, 2, P*4), boxes and then their variances, which
// variance_encoded_in_target makes unused; with normalized: false (OpenVINO) (1, 2, P*5): before
// its box a prior has the number of an image, which is not read, and the box is in pixels of an
// image of input_width x input_height. A fourth bottom, the image, is not read. The top is (1, 1,
// M, 7), for each object image, class, score, left, top, right, bottom, the last four relative to
// the image; if no image has any, N rows of image and -1. With save_output_param,
// files of VOC, COCO or ILSVRC are written after num_test_image images.
// Parameters: none.
// Gradient: none.
#include <algorithm>
#include <limits>

#include "device/aligned.h"
#include "device/parallel.h"
#include "layers/detection/detection_files.h"
#include "layers/detection/multibox_assignment.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"
#include "tensor/on.h"

namespace crema {
namespace {

// The boxes of all images: (images, count, positions).
template <typename T>
struct PredictedBoxes {
  BoxCoding coding;
  bool with_variances;
  int64_t count, positions;
  const T *predictions, *priors;
  Box* boxes;
  int64_t numbers;  // numbers per prior: 4, or 5 if the image number comes before the box
  float width, height;
  bool clip;
  CREMA_HD static float inside(float at) { return at < 0 ? 0 : at > 1 ? 1 : at; }
  CREMA_HD static Box box_at(const T* at) {
    return {static_cast<float>(at[0]), static_cast<float>(at[1]), static_cast<float>(at[2]),
            static_cast<float>(at[3])};
  }
  CREMA_HD void operator()(int64_t i) const {
    const int64_t prior = i / positions % count;
    BoxVariances variances;
    for (int k = 0; k < 4 && with_variances; ++k)
      variances.v[k] = static_cast<float>(priors[count * numbers + prior * 4 + k]);
    Box box = box_at(priors + prior * numbers + (numbers - 4));
    box = {box.x1 / width, box.y1 / height, box.x2 / width, box.y2 / height};
    box = decode(coding, box, variances, box_at(predictions + i * 4));
    if (clip) box = {inside(box.x1), inside(box.y1), inside(box.x2), inside(box.y2)};
    boxes[i] = box;
  }
};

template <typename T>
struct InFloat {
  const T* scores;
  float* out;
  CREMA_HD void operator()(int64_t i) const { out[i] = static_cast<float>(scores[i]); }
};

class DetectionOutputLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::detection, .selects = true};

 private:
  const DetectionOutputParameter& p() const { return params<DetectionOutputParameter>(); }
  Arity bottoms() const override { return {3, 4}; }
  bool differentiable(int) const override { return false; }
  LayerTraits traits() const override {
    return {.dynamic = true, .reads = {false, false}, .works_on_host = true};
  }

  void setup(Context& context, const std::vector<Shape>&) override {
    require(p().num_classes() > 0,
            "detection_output_param needs num_classes: how many classes, with the background?");
    const NonMaximumSuppressionParameter& nms = p().nms_param();
    require(nms.nms_threshold() >= 0, "nms_threshold is ", nms.nms_threshold(),
            ", but an overlap is 0 to 1");
    require(nms.eta() > 0 && nms.eta() <= 1, "eta is ", nms.eta(),
            ", but must be above 0 and at most 1");
    suppression_ = {nms.nms_threshold(), nms.eta()};
    top_k_ = nms.has_top_k() ? nms.top_k() : -1;
    threshold_ = p().has_confidence_threshold() ? p().confidence_threshold()
                                                : -std::numeric_limits<float>::max();
    classes_ = p().num_classes();
    require(
        p().normalized() || (p().input_width() > 0 && p().input_height() > 0),
        "with normalized: false the priors are pixels; input_width and input_height must say of "
        "which image");
    positions_ = p().share_location() ? 1 : classes_;
    open_files(context);
  }

  void open_files(Context& context) {
    const SaveOutputParameter& save = p().save_output_param();
    if (save.output_directory().empty()) return;
    if (save.label_map_file().empty() || save.name_size_file().empty()) {
      context.log().warning(
          "detections are not written to files: save_output_param needs label_map_file and "
          "name_size_file besides output_directory");
      return;
    }
    files_ = std::make_unique<DetectionFiles>(save, folder(), static_cast<int>(classes_),
                                              p().background_label_id());
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape &predictions = bottoms[0], &scores = bottoms[1], &priors = bottoms[2];
    const int64_t numbers = numbers_of_prior();
    const int64_t parts = p().variance_encoded_in_target() ? 1 : 2;  // boxes, and variances if read
    require(priors.axes() >= 3 && priors[1] >= parts && priors[1] <= 2 && priors[2] % numbers == 0,
            "the third bottom, the priors, is ", priors.brief(), ", but must be 1 x 2 x ", numbers,
            " numbers for each prior, as ",
            p().normalized() ? "PriorBox makes it" : "normalized: false says");
    const int64_t count = priors[2] / numbers, images = predictions.axes() > 0 ? predictions[0] : 1;
    const auto check = [&](const Shape& shape, int64_t each, const char* what) {
      require(
          shape.axes() >= 1 && shape[0] == images && shape.count(1) == Shape{count, each}.count(),
          "the ", what, " are ", shape.brief(), ", but ", count, " priors need ", count * each,
          " numbers (", each, " a prior) for each of ", images, " images");
    };
    check(predictions, positions_ * 4, "predictions, the first bottom,");
    check(scores, classes_, "scores, the second bottom,");
    const int background = p().background_label_id();
    const int64_t objects = classes_ - (background >= 0 && background < classes_ ? 1 : 0);
    int64_t maximum = (top_k_ >= 0 ? std::min<int64_t>(top_k_, count) : count) * objects;
    if (p().keep_top_k() >= 0) maximum = std::min<int64_t>(maximum, p().keep_top_k());
    return {{{1, 1, images * std::max<int64_t>(maximum, 1), kDetectionValues}}, {}};
  }

  float size(int side) const { return p().normalized() ? 1 : static_cast<float>(side); }
  int64_t numbers_of_prior() const { return p().normalized() ? 4 : 5; }

  NmsInput nms_input(const Shape& predictions, const Shape& priors) const {
    NmsInput input;
    input.groups = predictions[0];
    input.lists_per_group = classes_;
    input.boxes_per_list = priors[2] / numbers_of_prior();
    input.shared_boxes = p().share_location();
    input.skipped_list = p().background_label_id();
    input.min_score = threshold_;
    input.max_candidates = top_k_;
    input.suppression = suppression_;
    input.max_per_group = p().keep_top_k() < 0 ? -1 : p().keep_top_k();
    return input;
  }

  // Workspace: boxes, the scores if the net does not compute in float32, nms's workspace.
  static size_t box_bytes(const NmsInput& input) {
    const int64_t boxes = input.groups * input.boxes_per_list * input.box_lists();
    return aligned(static_cast<size_t>(boxes) * sizeof(Box));
  }
  static size_t score_bytes(const NmsInput& input, DType dtype) {
    const auto scores = static_cast<size_t>(input.lists() * input.boxes_per_list);
    return dtype == DType::f32 ? 0 : aligned(scores * sizeof(float));
  }

  Prepared prepare(Context& context, const Preparation& preparation) const override {
    const NmsInput input = nms_input(preparation.bottoms[0], preparation.bottoms[2]);
    Prepared prepared;
    prepared.make_state<DynamicTops>();
    prepared.workspace =
        box_bytes(input) + score_bytes(input, preparation.dtype) + nms_workspace(context, input);
    return prepared;
  }

  // For each class of each image.
  NmsResult found(Context& context, const std::vector<Tensor>& bottoms, char* workspace) const {
    NmsInput input = nms_input(bottoms[0].shape(), bottoms[2].shape());
    auto* const boxes = reinterpret_cast<Box*>(workspace);
    auto* const scores = reinterpret_cast<float*>(workspace + box_bytes(input));
    input.boxes = boxes;
    on(bottoms[0], [&]<typename T>() {
      parallel_for(
          context, input.groups * input.boxes_per_list * positions_,
          PredictedBoxes<T>{box_coding(p().code_type()), !p().variance_encoded_in_target(),
                            input.boxes_per_list, positions_, bottoms[0].data<T>(),
                            bottoms[2].data<T>(), boxes, numbers_of_prior(),
                            size(p().input_width()), size(p().input_height()), p().clip()});
      input.scores = scores;
      if constexpr (std::is_same_v<T, float>) {
        input.scores = bottoms[1].data<float>();
      } else {
        parallel_for(context, bottoms[1].count(), InFloat<T>{bottoms[1].data<T>(), scores});
      }
    });
    return nms(context, input,
               workspace + box_bytes(input) + score_bytes(input, bottoms[0].dtype()));
  }

  void forward(Context& context, const Forward& pass) const override {
    const NmsResult best =
        find_boxes(context, pass.bottom, pass.workspace,
                   [&](Context& where, const std::vector<Tensor>& bottoms, char* workspace) {
                     return found(where, bottoms, workspace);
                   });
    if (files_) {
      for (const std::vector<Detection>& of_image : copy_detections(context, best, classes_))
        files_->add(of_image);
    }
    state_of<DynamicTops>(pass).tops = {
        write_detections(context, best, pass.bottom[0].shape()[0], 0, pass.top[0])};
  }

  int64_t classes_ = 0, positions_ = 1;  // positions: boxes per prior, one per class or one for all
  int64_t top_k_ = -1;
  float threshold_ = 0;
  Suppression suppression_;
  std::unique_ptr<DetectionFiles> files_;
};

}  // namespace
REGISTER_LAYER(DetectionOutput, DetectionOutputLayer);
}  // namespace crema
