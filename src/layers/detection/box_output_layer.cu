// BoxOutput: region proposals from the maps of all scales of MS-CNN.
//   score = maximum class score - score of the background, class 0; at least fg_thr
//   box = field of the position, moved and scaled by the prediction, denormalized with bbox_std and
//   bbox_mean and limited (shift to 1 / field_xyr of the field's size, scale to field_whr), clipped
//   to the image and at least min_size wide and high
//   NMS on an image's max_nms_num best (0: all) with threshold iou_thr keeps at most
//   max_post_nms_num (0: all); nms_type gives the divisor of the intersection: IOU the union, IOMU
//   the smaller box, IOFU the better one
// Shapes: maps (N, classes + 4, H_i, W_i), as many as there are field_h, field_w and
// downsample_rate. Tops: regions (R, 5, 1, 1) of image, left, top, right, bottom in pixels; and (R,
// 6, 1, 1) followed by the score. Without any: one region (0, 1, 1, 10, 10), and zeros.
// Parameters: none.
// Gradient: none.
#include <algorithm>
#include <limits>

#include "device/parallel.h"
#include "layers/detection/detection.h"
#include "layers/detection/field_boxes.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"
#include "tensor/on.h"
#include "tensor/part.h"

namespace crema {
namespace {

constexpr float kNoRoi = -std::numeric_limits<float>::infinity();

// Decodes the positions of one map for all images; they are `first` and following of the `all`
// positions of an image. They are listed from last to first, because the fork prefers the last of
// equal scores.
template <typename T>
struct DecodePositions {
  FieldBoxes fields;
  int64_t classes, height, width, first, all;
  float min_score, min_side, no_score;
  const T* x;
  Box* box_of;
  float* score_of;

  CREMA_HD void operator()(int64_t i) const {
    const int64_t positions = height * width, image = i / positions, position = i % positions;
    const int64_t out = image * all + all - 1 - first - position;
    const T* at = x + image * (classes + 4) * positions + position;
    score_of[out] = no_score;
    float score = static_cast<float>(at[positions]);
    for (int64_t k = 2; k < classes; ++k) {
      const auto other = static_cast<float>(at[k * positions]);
      score = other > score ? other : score;
    }
    score -= static_cast<float>(at[0]);
    if (!(score >= min_score)) return;
    Box box = fields.box(at + classes * positions, positions, position / width, position % width);
    // A box that begins outside the image is moved inside; its far side is clipped.
    const float wide = box.x2 - box.x1, high = box.y2 - box.y1;
    box.x1 = box.x1 > 0 ? box.x1 : 0;
    box.y1 = box.y1 > 0 ? box.y1 : 0;
    const float to_right = static_cast<float>(width) * fields.step - box.x1,
                to_bottom = static_cast<float>(height) * fields.step - box.y1;
    box.x2 = box.x1 + (wide < to_right ? wide : to_right);
    box.y2 = box.y1 + (high < to_bottom ? high : to_bottom);
    if (!(box.x2 - box.x1 >= min_side && box.y2 - box.y1 >= min_side)) return;
    box_of[out] = box;
    score_of[out] = score;
  }
};

class BoxOutputLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::detection, .selects = true};

 private:
  const BoxOutputParameter& p() const { return params<BoxOutputParameter>(); }
  Arity bottoms() const override { return {1, -1}; }
  Arity tops() const override { return {1, 2}; }
  bool differentiable(int) const override { return false; }
  LayerTraits traits() const override {
    return {.dynamic = true, .reads = {false, false}, .works_on_host = true};
  }

  void setup(Context&, const std::vector<Shape>& bottoms) override {
    const auto maps = static_cast<int>(bottoms.size());
    require(p().field_h_size() == maps && p().field_w_size() == maps &&
                p().downsample_rate_size() == maps,
            "there are ", maps, " maps, but ", p().field_h_size(), " field_h, ", p().field_w_size(),
            " field_w and ", p().downsample_rate_size(), " downsample_rate: give one for each map");
    const std::string& type = p().nms_type();
    require(type == "IOU" || type == "IOMU" || type == "IOFU", "unknown nms_type \"", type, "\"",
            did_you_mean(type, {"IOU", "IOMU", "IOFU"}), "; there are IOU, IOMU and IOFU");
    for (int i = 0; i < maps; ++i) {
      fields_.emplace_back(static_cast<float>(p().field_h(i)), static_cast<float>(p().field_w(i)),
                           static_cast<float>(p().downsample_rate(i)), p().field_whr(),
                           p().field_xyr(), params<BBoxRegParameter>());
    }
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    int64_t maximum = 0;
    for (const Shape& map : bottoms) {
      require(map.axes() == 4 && map[0] == bottoms[0][0] && map[1] == bottoms[0][1] && map[1] > 5,
              "a map is ", map.brief(),
              ", but the maps must be N x (classes + 4) x H x W, and N "
              "and the classes (2 at least, with background) those of the first, ",
              bottoms[0].brief());
      maximum += map.count(2);
    }
    for (const int64_t kept : {p().max_nms_num(), p().max_post_nms_num()})
      if (kept > 0) maximum = std::min(maximum, kept);
    maximum = std::max<int64_t>(1, maximum * bottoms[0][0]);
    std::vector<Shape> tops = {{maximum, 5, 1, 1}};
    if (message().top_size() > 1) tops.push_back({maximum, 6, 1, 1});
    return {tops, {}};
  }

  NmsInput nms_input(const std::vector<Shape>& maps) const {
    NmsInput input;
    input.groups = maps[0][0];
    for (const Shape& map : maps) input.boxes_per_list += map.count(2);
    input.min_score = kNoRoi;
    if (p().max_nms_num() > 0) input.max_candidates = p().max_nms_num();
    input.suppression.threshold = p().iou_thr();
    if (p().max_post_nms_num() > 0) input.suppression.maximum = p().max_post_nms_num();
    input.suppression.by = p().nms_type() == "IOU"    ? OverlapBy::both
                           : p().nms_type() == "IOMU" ? OverlapBy::smaller
                                                      : OverlapBy::second;
    return input;
  }

  Prepared prepare(Context& context, const Preparation& preparation) const override {
    Prepared prepared;
    prepared.make_state<DynamicTops>();
    prepared.workspace = BoxWorkspace::bytes(context, nms_input(preparation.bottoms));
    return prepared;
  }

  // Per image.
  NmsResult found(Context& context, const std::vector<Tensor>& maps, char* workspace) const {
    std::vector<Shape> shapes;
    for (const Tensor& map : maps) shapes.push_back(map.shape());
    NmsInput input = nms_input(shapes);
    const BoxWorkspace room(input, workspace);
    int64_t first = 0;
    for (size_t i = 0; i < maps.size(); ++i) {
      const Shape& shape = shapes[i];
      on(maps[i], [&]<typename T>() {
        parallel_for(context, input.groups * shape.count(2),
                     DecodePositions<T>{fields_[i], shape[1] - 4, shape[2], shape[3], first,
                                        input.boxes_per_list, p().fg_thr(),
                                        static_cast<float>(p().min_size()), kNoRoi,
                                        maps[i].data<T>(), room.boxes, room.scores});
      });
      first += shape.count(2);
    }
    input.boxes = room.boxes;
    input.scores = room.scores;
    return nms(context, input, room.rest);
  }

  void forward(Context& context, const Forward& pass) const override {
    const NmsResult regions =
        find_boxes(context, pass.bottom, pass.workspace,
                   [&](Context& where, const std::vector<Tensor>& maps, char* workspace) {
                     return found(where, maps, workspace);
                   });
    const int64_t count = regions.total();
    constexpr float kNone[2][6] = {{0, 1, 1, 10, 10}, {}};
    std::vector<Shape>& tops = state_of<DynamicTops>(pass).tops;
    tops.clear();
    for (size_t i = 0; i < pass.top.size(); ++i) {
      tops.push_back({std::max<int64_t>(count, 1), i == 0 ? 5 : 6, 1, 1});
      const Tensor top = part(pass.top[i], tops[i]);
      if (count == 0) from_floats(context, kNone[i], top);
      if (count > 0) write_regions(context, regions, top);
    }
  }

  std::vector<FieldBoxes> fields_;  // of each map
};

}  // namespace
REGISTER_LAYER(BoxOutput, BoxOutputLayer);
}  // namespace crema
