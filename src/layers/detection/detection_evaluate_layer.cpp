// DetectionEvaluate: which detections find an object. From these rows of all batches a solver with
// eval_type: "detection" computes the average precision.
//   first a row per class but the background: -1, class, number of objects, -1, -1; then one per
//   detection: image, class, score, whether it is right (1 or 0), whether it is wrong (1 or 0)
//   Within an image and class, detections are ordered by score. One is right if no earlier one has
//   found the object that it overlaps most, by at least overlap_threshold. With
//   evaluate_difficult_gt: false difficult objects do not count: a detection that finds one is
//   neither right nor wrong. name_size_file lists "name height width" of the images in the order of
//   the data: boxes are then compared in pixels of the images before resize_param.
// Shapes: detections (1, 1, K, 7): image, class, score, x1, y1, x2, y2, class -1: unused; objects
// (1, 1, G, 8) of AnnotatedData, image -1: unused; the top is (1, 1, classes - 1 + K, 5). Unused
// rows have class -1 and zeros.
// Parameters: none.
// Gradient: none.
#include <algorithm>
#include <atomic>
#include <sstream>

#include "base/files.h"
#include "layers/detection/box_matching.h"
#include "layers/layer.h"
#include "proto/params/forks_detection.pb.h"

namespace crema {
namespace {

struct Found {
  Box box;
  float score;
};
using ByClass = std::map<int, std::vector<Found>>;

// Converts to pixels of an image of this size, before resizing; clips at its border.
Box in_pixels(const Box& box, float height, float width, const ResizeParameter* resize) {
  Box shares = box;
  if (resize && resize->resize_mode() == ResizeParameter::FIT_LARGE_SIZE_AND_PAD) {
    // The image was centred in the resized one, with borders.
    const auto new_height = static_cast<float>(resize->height()),
               new_width = static_cast<float>(resize->width()), aspect = width / height;
    const bool wide = aspect > new_width / new_height;
    const float across = wide ? 0 : (new_width - new_height * aspect) / 2 / new_width;
    const float down = wide ? (new_height - new_width / aspect) / 2 / new_height : 0;
    shares = {(box.x1 - across) / (1 - 2 * across), (box.y1 - down) / (1 - 2 * down),
              (box.x2 - across) / (1 - 2 * across), (box.y2 - down) / (1 - 2 * down)};
  }
  const Box within = clipped(shares);
  return {within.x1 * width, within.y1 * height, within.x2 * width, within.y2 * height};
}

class DetectionEvaluateLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::metric};

 private:
  const DetectionEvaluateParameter& p() const { return params<DetectionEvaluateParameter>(); }
  Arity bottoms() const override { return {2, 2}; }
  bool differentiable(int) const override { return false; }
  LayerTraits traits() const override { return {.reads = {false, false}, .works_on_host = true}; }

  void setup(Context&, const std::vector<Shape>&) override {
    classes_ = static_cast<int>(p().num_classes());
    background_ = static_cast<int>(p().background_label_id());
    require(p().has_num_classes() && classes_ > 0,
            "detection_evaluate_param needs num_classes, the number of classes with background");
    require(p().overlap_threshold() > 0, "overlap_threshold must be positive, but is ",
            p().overlap_threshold());
    if (!p().has_name_size_file()) return;
    const std::string path = find_file(p().name_size_file(), folder());
    std::istringstream file(read_text(path));
    std::string name;
    float height = 0, width = 0;
    while (file >> name >> height >> width) sizes_.push_back({height, width});
    require(!sizes_.empty(), path, ": no line \"name height width\" of an image");
  }

  int64_t class_rows() const { return background_ < classes_ ? classes_ - 1 : classes_; }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const auto check = [&](int bottom, const char* what, int64_t columns) {
      const Shape& shape = bottoms[bottom];
      require(shape.axes() > 0 && shape[shape.axes() - 1] == columns, "bottom ", bottom,
              " must be ", what, ", rows of ", columns, " numbers, but is ", shape.brief());
    };
    check(0, "detections", 7);
    check(1, "objects", 8);
    return {{{1, 1, class_rows() + bottoms[0].count() / 7, 5}}, {}};
  }

  std::map<int, ByClass> read_detections(const std::vector<float>& rows) const {
    std::map<int, ByClass> images;
    for (size_t i = 0; i + 7 <= rows.size(); i += 7) {
      const float* row = rows.data() + i;
      const int image = static_cast<int>(row[0]), label = static_cast<int>(row[1]);
      if (image == -1) continue;
      require(label != background_, "a detection of image ", image, " is of the background class, ",
              background_, ": background_label_id of DetectionOutput must be the same");
      ByClass& classes = images[image];  // an image without detections still counts
      if (label != -1) classes[label].push_back({{row[3], row[4], row[5], row[6]}, row[2]});
    }
    return images;
  }

  void forward(Context& context, const Forward& pass) const override {
    const ObjectRule rule{classes_, background_, true};
    const auto objects = read_objects(to_floats(context, pass.bottom[1]), rule);
    const auto detections = read_detections(to_floats(context, pass.bottom[0]));
    std::vector<float> rows;
    const auto add = [&](std::initializer_list<float> row) {
      rows.insert(rows.end(), row.begin(), row.end());
    };
    std::vector<int64_t> counts(classes_, 0);
    for (const auto& [image, all] : objects) {
      for (const Object& object : all)
        counts[object.label] += p().evaluate_difficult_gt() || !object.difficult;
    }
    for (int k = 0; k < classes_; ++k) {
      if (k != background_) add({-1, static_cast<float>(k), static_cast<float>(counts[k]), -1, -1});
    }
    for (const auto& [image, classes] : detections) {
      const auto in_image = objects.find(image);
      for (const auto& [label, found] : classes) {
        std::vector<Object> of_class;
        if (in_image != objects.end()) {
          for (const Object& object : in_image->second)
            if (object.label == label) of_class.push_back(object);
        }
        for (const auto& [score, verdict] : judged(found, of_class)) {
          add({static_cast<float>(image), static_cast<float>(label), score,
               static_cast<float>(verdict.right), static_cast<float>(verdict.wrong)});
        }
      }
      if (!sizes_.empty()) next_ = (next_ + 1) % sizes_.size();
    }
    while (static_cast<int64_t>(rows.size()) < pass.top[0].count()) add({0, -1, 0, 0, 0});
    from_floats(context, rows.data(), pass.top[0]);
  }

  // Scores in decreasing order, and verdicts.
  std::vector<std::pair<float, Verdict>> judged(std::vector<Found> found,
                                                std::vector<Object> objects) const {
    if (!sizes_.empty()) {
      const ResizeParameter* resize = p().has_resize_param() ? &p().resize_param() : nullptr;
      const auto [height, width] = sizes_[next_];
      for (Found& f : found) f.box = in_pixels(f.box, height, width, resize);
      for (Object& object : objects) object.box = in_pixels(object.box, height, width, resize);
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const Found& a, const Found& b) { return a.score > b.score; });
    std::vector<Box> boxes;
    for (const Found& f : found) boxes.push_back(f.box);
    const std::vector<Verdict> verdicts =
        judge(boxes, objects,
              {p().overlap_threshold(), p().evaluate_difficult_gt(), sizes_.empty() ? 0.f : 1.f});
    std::vector<std::pair<float, Verdict>> all;
    for (size_t i = 0; i < found.size(); ++i) all.emplace_back(found[i].score, verdicts[i]);
    return all;
  }

  int classes_ = 0, background_ = 0;
  std::vector<std::pair<float, float>> sizes_;  // height, width of each image
  // Index of the next image in the data: like the position of a source it belongs to no plan.
  mutable std::atomic<size_t> next_{0};
};

}  // namespace
REGISTER_LAYER(DetectionEvaluate, DetectionEvaluateLayer);
}  // namespace crema
