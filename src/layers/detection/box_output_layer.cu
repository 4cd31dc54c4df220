// BoxOutput: regions that may hold an object, from the maps of all scales of MS-CNN.
//   score = largest score of a class - score of the background, class 0; at least fg_thr
//   box = field of the place, moved and scaled by the prediction (at most 1 / field_xyr of its size
//   and by field_whr), less bbox_std and bbox_mean, cut at the border of the image and at least
//   min_size wide and high
//   of an image's max_nms_num best (0: all) those that no better one overlaps by more than iou_thr,
//   at most max_post_nms_num (0: all); nms_type says what the intersection is divided by: IOU the
//   union, IOMU the smaller box, IOFU the better one
// Shapes: maps (N, classes + 4, H_i, W_i), as many as there are field_h, field_w and
// downsample_rate. Tops: regions (R, 5, 1, 1) of image, left, top, right, bottom in pixels; and
// (R, 6, 1, 1) with the score behind. Without any: one region (0, 1, 1, 10, 10), and zeros.
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

constexpr float kNoRegion = -std::numeric_limits<float>::infinity();

// What the places of a map of all images show: `first` of the `all` places of an image. They are
// listed from the last to the first, as of equal scores the last one counts as in the fork.
template <typename T>
struct RegionsOfPlaces {
  FieldBoxes fields;
  int64_t classes, height, width, first, all;
  float least_score, least_side, no_score;
  const T* x;
  Box* box_of;
  float* score_of;

  CREMA_HD void operator()(int64_t i) const {
    const int64_t places = height * width, image = i / places, place = i % places;
    const int64_t out = image * all + all - 1 - first - place;
    const T* at = x + image * (classes + 4) * places + place;
    score_of[out] = no_score;
    float score = static_cast<float>(at[places]);
    for (int64_t k = 2; k < classes; ++k) {
      const auto other = static_cast<float>(at[k * places]);
      score = other > score ? other : score;
    }
    score -= static_cast<float>(at[0]);
    if (!(score >= least_score)) return;
    Box box = fields.box(at + classes * places, places, place / width, place % width);
    // A box that begins outside is moved in; its far side is cut.
    const float wide = box.x2 - box.x1, high = box.y2 - box.y1;
    box.x1 = box.x1 > 0 ? box.x1 : 0;
    box.y1 = box.y1 > 0 ? box.y1 : 0;
    const float to_right = static_cast<float>(width) * fields.step - box.x1,
                to_bottom = static_cast<float>(height) * fields.step - box.y1;
    box.x2 = box.x1 + (wide < to_right ? wide : to_right);
    box.y2 = box.y1 + (high < to_bottom ? high : to_bottom);
    if (!(box.x2 - box.x1 >= least_side && box.y2 - box.y1 >= least_side)) return;
    box_of[out] = box;
    score_of[out] = score;
  }
};

class BoxOutputLayer : public Layer {
  const BoxOutputParameter& p() const { return params<BoxOutputParameter>(); }
  Arity bottoms() const override { return {1, -1}; }
  Arity tops() const override { return {1, 2}; }
  bool differentiable(int) const override { return false; }
  bool works_on_host() const override { return true; }
  bool dynamic() const override { return true; }
  BackwardReads reads() const override { return {false, false}; }

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
    int64_t most = 0;
    for (const Shape& map : bottoms) {
      require(map.axes() == 4 && map[0] == bottoms[0][0] && map[1] == bottoms[0][1] && map[1] > 5,
              "a map is ", map.brief(),
              ", but the maps must be N x (classes + 4) x H x W, and N "
              "and the classes (2 at least, with background) those of the first, ",
              bottoms[0].brief());
      most += map.count(2);
    }
    for (const int64_t kept : {p().max_nms_num(), p().max_post_nms_num()})
      if (kept > 0) most = std::min(most, kept);
    most = std::max<int64_t>(1, most * bottoms[0][0]);
    std::vector<Shape> tops = {{most, 5, 1, 1}};
    if (message().top_size() > 1) tops.push_back({most, 6, 1, 1});
    return {tops, {}};
  }

  BoxLists lists_of(const std::vector<Shape>& maps) const {
    BoxLists lists{maps[0][0]};
    for (const Shape& map : maps) lists.count += map.count(2);
    lists.least = kNoRegion;
    if (p().max_nms_num() > 0) lists.candidates = p().max_nms_num();
    lists.suppression.threshold = p().iou_thr();
    if (p().max_post_nms_num() > 0) lists.suppression.most = p().max_post_nms_num();
    lists.suppression.by = p().nms_type() == "IOU"    ? OverlapBy::both
                           : p().nms_type() == "IOMU" ? OverlapBy::smaller
                                                      : OverlapBy::second;
    return lists;
  }

  Prepared prepare(Context& context, const Preparation& preparation) override {
    Prepared prepared;
    prepared.workspace = BoxRoom::bytes(context, lists_of(preparation.bottoms));
    return prepared;
  }

  // Of each image.
  BestBoxes found(Context& context, const std::vector<Tensor>& maps, char* workspace) const {
    std::vector<Shape> shapes;
    for (const Tensor& map : maps) shapes.push_back(map.shape());
    BoxLists lists = lists_of(shapes);
    const BoxRoom room(lists, workspace);
    int64_t first = 0;
    for (size_t i = 0; i < maps.size(); ++i) {
      const Shape& shape = shapes[i];
      on(maps[i], [&]<typename T>() {
        parallel_for(
            context, lists.groups * shape.count(2),
            RegionsOfPlaces<T>{fields_[i], shape[1] - 4, shape[2], shape[3], first, lists.count,
                               p().fg_thr(), static_cast<float>(p().min_size()), kNoRegion,
                               maps[i].data<T>(), room.boxes, room.scores});
      });
      first += shape.count(2);
    }
    lists.boxes = room.boxes;
    lists.scores = room.scores;
    return best_boxes(context, lists, room.rest);
  }

  void forward(Context& context, const Forward& pass) override {
    const BestBoxes regions =
        find_boxes(context, pass.bottom, pass.workspace,
                   [&](Context& where, const std::vector<Tensor>& maps, char* workspace) {
                     return found(where, maps, workspace);
                   });
    const int64_t count = regions.count();
    constexpr float kNone[2][6] = {{0, 1, 1, 10, 10}, {}};
    tops_.clear();
    for (size_t i = 0; i < pass.top.size(); ++i) {
      tops_.push_back({std::max<int64_t>(count, 1), i == 0 ? 5 : 6, 1, 1});
      const Tensor top = part(pass.top[i], tops_[i]);
      if (count == 0) from_floats(context, kNone[i], top);
      if (count > 0) write_regions(context, regions, top);
    }
  }

  std::vector<Shape> dynamic_tops() const override { return tops_; }

  std::vector<FieldBoxes> fields_;  // of each map
  std::vector<Shape> tops_;         // of the last forward pass
};

}  // namespace
REGISTER_LAYER(BoxOutput, BoxOutputLayer);
}  // namespace crema
