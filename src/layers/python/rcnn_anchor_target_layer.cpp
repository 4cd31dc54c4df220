// rpn.anchor_target_layer.AnchorTargetLayer (py-faster-rcnn, R-FCN): the targets of the region
// proposal network at each anchor.
//   anchors as in Proposal, at each position of the map; only those within the image count
//   label 1: an overlap with an object of rpn_positive_overlap or more, or the largest one (or
//   equal to it) that any anchor has with some object; 0: below rpn_negative_overlap with all; else
//   -1 Keeps rpn_fg_fraction * rpn_batchsize objects at random, and as many of the rest as make up
//   rpn_batchsize; labels of others become -1.
//   targets = (shift of the centre / size, log of the size ratio) to the object that overlaps most
//   inside weights: rpn_bbox_inside_weights where the label is 1, else 0
//   outside weights: 1 / number of labels that are not -1, at those; with rpn_positive_weight p
//   above 0 p / number of ones and (1 - p) / number of zeros
// An object that no anchor touches makes every anchor that does not touch it positive, as in the
// original.
// Shapes: the map's scores (1, ..., H, W); objects (G, 5) of left, top, right, bottom and class;
// image size (1, 3 or more) of height and width; a fourth bottom (the image) is not read. Tops:
// labels (1, 1, A * H, W) for A anchors, targets, inside and outside weights (1, 4 * A, H, W).
// Computed on the host.
// Parameters: none.
// Gradient: none.
#include <algorithm>

#include "layers/python/native.h"
#include "layers/python/rcnn.h"
#include "proto/layer.pb.h"

namespace crema {
namespace {

struct AnchorSettings {
  double stride, border, positive_overlap, negative_overlap, fraction, positive_weight;
  int64_t batch;
  bool clobber;
  std::vector<double> inside;
};

class AnchorTargetLayer : public Layer {
  Arity bottoms() const override { return {3, 4}; }
  Arity tops() const override { return {4, 4}; }
  bool differentiable(int) const override { return false; }
  bool reads_values(int bottom) const override { return bottom == 1 || bottom == 2; }
  LayerTraits traits() const override { return {.reads = {false, false}, .works_on_host = true}; }

  void setup(Context&, const std::vector<Shape>&) override {
    const ParamStr given(message());
    s_.stride = static_cast<double>(given.needed_integer("feat_stride"));
    s_.border = given.number("allowed_border", 0);
    s_.positive_overlap = given.number("rpn_positive_overlap", 0.7);
    s_.negative_overlap = given.number("rpn_negative_overlap", 0.3);
    s_.clobber = given.flag("rpn_clobber_positives", false);
    s_.fraction = given.number("rpn_fg_fraction", 0.5);
    s_.batch = given.integer("rpn_batchsize", 256);
    s_.inside = four_numbers(given, "rpn_bbox_inside_weights", {1, 1, 1, 1});
    s_.positive_weight = given.number("rpn_positive_weight", -1);
    anchors_ = anchors_of(given);
    given.refuse_others();
    require(s_.stride > 0, "feat_stride is ", s_.stride, ", but must be above 0");
    require(s_.batch > 0 && s_.fraction >= 0 && s_.fraction <= 1, "rpn_batchsize is ", s_.batch,
            " and rpn_fg_fraction ", s_.fraction, ", but must be above 0, and from 0 to 1");
    require(s_.positive_weight < 1 && s_.positive_weight != 0, "rpn_positive_weight is ",
            s_.positive_weight, ", but must be between 0 and 1, or negative for equal weights");
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape& map = bottoms[0];
    require(map.axes() == 4 && map[0] == 1, "the scores are ", map.brief(),
            ", but must be 1 x ... x H x W: these layers take one image at a time");
    require_objects(bottoms[1]);
    require(bottoms[2].axes() >= 1 && bottoms[2][0] == 1 && bottoms[2].count() >= 2,
            "the image size is ", bottoms[2].brief(), ", but must be 1x3: height, width, factor");
    const auto anchors = static_cast<int64_t>(anchors_.size());
    const Shape four{1, 4 * anchors, map[2], map[3]};
    return {{{1, 1, anchors * map[2], map[3]}, four, four, four}, {}};
  }

  // Indices of the anchors within the image.
  struct Anchors {
    std::vector<int64_t> which;  // position * anchors + anchor
    std::vector<PixelBox> boxes;
    std::vector<BestObject> best;
    std::vector<int> labels;
  };

  Anchors within(int64_t positions, int64_t width, double image_height, double image_width) const {
    Anchors within;
    for (int64_t i = 0; i < positions; ++i) {
      const double x = static_cast<double>(i % width) * s_.stride,
                   y = static_cast<double>(i / width) * s_.stride;
      for (size_t k = 0; k < anchors_.size(); ++k) {
        const PixelBox& a = anchors_[k];
        const PixelBox box{a.x1 + x, a.y1 + y, a.x2 + x, a.y2 + y};
        if (box.x1 < -s_.border || box.y1 < -s_.border || box.x2 >= image_width + s_.border ||
            box.y2 >= image_height + s_.border)
          continue;
        within.which.push_back(i * static_cast<int64_t>(anchors_.size()) + static_cast<int64_t>(k));
        within.boxes.push_back(box);
      }
    }
    return within;
  }

  void label(Anchors& all, const std::vector<LabelledBox>& objects) const {
    const size_t count = all.boxes.size();
    all.labels.assign(count, -1);
    for (const PixelBox& box : all.boxes) all.best.push_back(best_of(box, objects));
    const auto mark_background = [&] {
      for (size_t i = 0; i < count; ++i) {
        if (all.best[i].overlap < s_.negative_overlap) all.labels[i] = 0;
      }
    };
    if (!s_.clobber) mark_background();
    std::vector<double> overlaps(count);
    for (const LabelledBox& object : objects) {
      for (size_t i = 0; i < count; ++i) overlaps[i] = overlap_of(all.boxes[i], object.box);
      const double largest = *std::max_element(overlaps.begin(), overlaps.end());
      for (size_t i = 0; i < count; ++i) {
        if (overlaps[i] == largest) all.labels[i] = 1;
      }
    }
    for (size_t i = 0; i < count; ++i) {
      if (all.best[i].overlap >= s_.positive_overlap) all.labels[i] = 1;
    }
    if (s_.clobber) mark_background();
  }

  // Ignores all but `count` random ones of those with this label; returns how many are left.
  static size_t keep(Anchors& all, int label, size_t count, const Random& random) {
    std::vector<int64_t> with;
    for (size_t i = 0; i < all.labels.size(); ++i) {
      if (all.labels[i] == label) with.push_back(static_cast<int64_t>(i));
    }
    if (with.size() <= count) return with.size();
    for (const int64_t i : with) all.labels[i] = -1;
    draw(with, count, random);
    for (const int64_t i : with) all.labels[i] = label;
    return count;
  }

  void forward(Context& context, const Forward& pass) const override {
    const Shape& map = pass.bottom[0].shape();
    const int64_t positions = map[2] * map[3], each = static_cast<int64_t>(anchors_.size());
    const std::vector<LabelledBox> objects = objects_of(context, pass.bottom[1]);
    const std::vector<float> size = to_floats(context, pass.bottom[2]);
    Anchors all = within(positions, map[3], size[0], size[1]);
    require(!all.boxes.empty(), "none of the anchors is within the image of ", size[1], "x",
            size[0], " pixels: give smaller scales than those of param_str");
    label(all, objects);
    const auto batch = static_cast<size_t>(s_.batch);
    const size_t ones = keep(all, 1, static_cast<size_t>(s_.fraction * static_cast<double>(batch)),
                             sampling_random(context, *this, pass, 0));
    const size_t zeros = keep(all, 0, batch - ones, sampling_random(context, *this, pass, 1));
    const bool equal = s_.positive_weight < 0;
    const double either = 1.0 / static_cast<double>(ones + zeros);
    const double of_one = equal ? either : s_.positive_weight / static_cast<double>(ones),
                 of_zero = equal ? either : (1 - s_.positive_weight) / static_cast<double>(zeros);

    std::vector<float> labels(static_cast<size_t>(each * positions), -1.f),
        targets(4 * labels.size()), inside(targets.size()), outside(targets.size());
    for (size_t i = 0; i < all.which.size(); ++i) {
      const int64_t position = all.which[i] / each, k = all.which[i] % each;
      const int object = all.best[i].object;
      const BoxShift shift =
          object < 0 ? BoxShift{} : shift_between(all.boxes[i], objects[object].box);
      labels[k * positions + position] = static_cast<float>(all.labels[i]);
      for (int64_t c = 0; c < 4; ++c) {
        const int64_t at = (4 * k + c) * positions + position;
        targets[at] = static_cast<float>(shift.v[c]);
        if (all.labels[i] == 1) inside[at] = static_cast<float>(s_.inside[c]);
        if (all.labels[i] >= 0)
          outside[at] = static_cast<float>(all.labels[i] == 1 ? of_one : of_zero);
      }
    }
    from_floats(context, labels.data(), pass.top[0]);
    from_floats(context, targets.data(), pass.top[1]);
    from_floats(context, inside.data(), pass.top[2]);
    from_floats(context, outside.data(), pass.top[3]);
  }

  AnchorSettings s_{};
  std::vector<PixelBox> anchors_;
};

REGISTER_PYTHON(AnchorTargetLayer, "rpn.anchor_target_layer", "AnchorTargetLayer");

}  // namespace
}  // namespace crema
