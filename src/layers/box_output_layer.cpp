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
// Parameters: none. Gradient: none.
#include <numeric>

#include "layers/field_boxes.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"
#include "tensor/part.h"

namespace crema {
namespace {

struct Found {
  Box box;
  float score;
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

  // Adds what a map of one image shows.
  void collect(const float* map, const Shape& shape, const FieldBoxes& fields,
               std::vector<Found>* found) const {
    const int64_t classes = shape[1] - 4, places = shape.count(2);
    const float right = static_cast<float>(shape[3]) * fields.step,
                bottom = static_cast<float>(shape[2]) * fields.step;
    const float least_score = p().fg_thr(), least_side = p().min_size();
    for (int64_t place = 0; place < places; ++place) {
      float score = map[places + place];
      for (int64_t k = 2; k < classes; ++k) score = std::max(score, map[k * places + place]);
      score -= map[place];
      if (score < least_score) continue;
      Box box =
          fields.box(map + classes * places + place, places, place / shape[3], place % shape[3]);
      // A box that begins outside is moved in; its far side is cut.
      const float width = box.x2 - box.x1, height = box.y2 - box.y1;
      box.x1 = std::max(box.x1, 0.f);
      box.y1 = std::max(box.y1, 0.f);
      box.x2 = box.x1 + std::min(width, right - box.x1);
      box.y2 = box.y1 + std::min(height, bottom - box.y1);
      if (box.x2 - box.x1 >= least_side && box.y2 - box.y1 >= least_side)
        found->push_back({box, score});
    }
  }

  // Those that stay, the best first; of equal scores the last found first, as in the fork.
  std::vector<Found> best(const std::vector<Found>& found) const {
    std::vector<int> order(found.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](int a, int b) {
      return found[a].score != found[b].score ? found[a].score > found[b].score : a > b;
    });
    if (p().max_nms_num() > 0 && order.size() > p().max_nms_num()) order.resize(p().max_nms_num());
    const size_t most = p().max_post_nms_num() > 0 ? p().max_post_nms_num() : order.size();
    const bool by_union = p().nms_type() == "IOU", by_smaller = p().nms_type() == "IOMU";
    const float share = p().iou_thr();
    std::vector<Found> kept;
    for (const int i : order) {
      if (kept.size() == most) break;
      const Box& box = found[i].box;
      const float own = area(box);
      const bool covered = std::any_of(kept.begin(), kept.end(), [&](const Found& better) {
        const float common = area(intersection(better.box, box)), other = area(better.box);
        const float whole = by_union     ? other + own - common
                            : by_smaller ? std::min(other, own)
                                         : other;
        return common > share * whole;
      });
      if (!covered) kept.push_back(found[i]);
    }
    return kept;
  }

  void forward(Context& context, const Forward& pass) override {
    std::vector<std::vector<float>> maps;
    for (const Tensor& map : pass.bottom) maps.push_back(to_floats(context, map));
    std::vector<float> regions, scored;
    for (int64_t n = 0; n < pass.bottom[0].shape()[0]; ++n) {
      std::vector<Found> found;
      for (size_t i = 0; i < maps.size(); ++i) {
        const Shape& shape = pass.bottom[i].shape();
        collect(maps[i].data() + n * shape.count(1), shape, fields_[i], &found);
      }
      for (const auto& [box, score] : best(found)) {
        const float row[] = {static_cast<float>(n), box.x1, box.y1, box.x2, box.y2, score};
        regions.insert(regions.end(), row, row + 5);
        scored.insert(scored.end(), row, row + 6);
      }
    }
    if (regions.empty()) {
      regions = {0, 1, 1, 10, 10};
      scored.assign(6, 0);
    }
    const auto count = static_cast<int64_t>(regions.size()) / 5;
    tops_ = {{count, 5, 1, 1}};
    if (pass.top.size() > 1) tops_.push_back({count, 6, 1, 1});
    from_floats(context, regions.data(), part(pass.top[0], tops_[0]));
    if (pass.top.size() > 1) from_floats(context, scored.data(), part(pass.top[1], tops_[1]));
  }

  std::vector<Shape> dynamic_tops() const override { return tops_; }

  std::vector<FieldBoxes> fields_;  // of each map
  std::vector<Shape> tops_;         // of the last forward pass
};

}  // namespace
REGISTER_LAYER(BoxOutput, BoxOutputLayer);
}  // namespace crema
