// Proposal: region proposals from a region proposal network (Faster R-CNN).
//   anchors: at each position of the map, for each ratio r and scale s, a box around the centre of
//   its first base_size pixels, w = round(sqrt(base_size^2 / r)) * s wide and
//   h = round(round(sqrt(base_size^2 / r)) * r) * s high; position (y, x) shifts it by feat_stride
//   box = the anchor shifted by (dx * w, dy * h) and scaled by (exp(dw), exp(dh)), clipped to the
//   image; boxes of less than min_size pixels (of the image before it was resized) are dropped;
//   NMS with nms_thresh on the pre_nms_topn best keeps at most post_nms_topn per image
// Shapes: scores (N, 2*A, H, W) for A anchors, the background's first; shifts (N, 4*A, H, W); image
// sizes (1 or N, 3 or more): height, width, and the resize factor (one, or one for the height and
// one for the width). Tops: regions (R, 5) of image, left, top, right, bottom in pixels, and their
// scores (R). R is 0 to N * post_nms_topn, depending on the data.
// Parameters: none.
// Gradient: none.
#include <algorithm>
#include <cmath>
#include <limits>

#include "device/parallel.h"
#include "layers/detection/detection.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"
#include "tensor/on.h"
#include "tensor/part.h"

namespace crema {
namespace {

constexpr float kPixel = 1;  // a box from pixel 3 to pixel 3 is one pixel wide

constexpr float kDropped = -std::numeric_limits<float>::infinity();  // score of a too small box

// The boxes of all anchors, position by position, clipped to the image, and their scores.
template <typename T>
struct AnchorBoxes {
  int64_t anchors, positions, width, images_sized, numbers;
  float stride, minimum, dropped;
  const T *anchor, *scores, *shifts, *sizes;
  Box* boxes;
  float* box_scores;
  CREMA_HD float number(const T* at) const { return static_cast<float>(*at); }
  CREMA_HD void operator()(int64_t i) const {
    const int64_t k = i % anchors, position = i / anchors % positions,
                  image = i / anchors / positions;
    const T *size = sizes + (images_sized == 1 ? 0 : image * numbers), *a = anchor + 4 * k;
    const T* s = shifts + (image * anchors + k) * 4 * positions + position;
    const float x = static_cast<float>(position % width) * stride,
                y = static_cast<float>(position / width) * stride;
    // Adds one pixel to the far corner, so that x2 - x1 is the width.
    const Box box{number(a) + x, number(a + 1) + y, number(a + 2) + x + kPixel,
                  number(a + 3) + y + kPixel};
    const Box shift{number(s), number(s + positions), number(s + 2 * positions),
                    number(s + 3 * positions)};
    const Box cut = clipped(decode(BoxCoding::center_size, box, {}, shift),
                            number(size + 1) - kPixel, number(size) - kPixel);
    const float scale_y = number(size + 2), scale_x = numbers > 3 ? number(size + 3) : scale_y;
    const bool large = cut.x2 - cut.x1 + kPixel >= minimum * scale_x &&
                       cut.y2 - cut.y1 + kPixel >= minimum * scale_y;
    boxes[i] = cut;
    box_scores[i] =
        large ? number(scores + (image * 2 * anchors + anchors + k) * positions + position)
              : dropped;
  }
};

class ProposalLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::detection, .selects = true};

 private:
  const ProposalParameter& p() const { return params<ProposalParameter>(); }
  Arity bottoms() const override { return {3, 3}; }
  Arity tops() const override { return {1, 2}; }
  bool differentiable(int) const override { return false; }
  LayerTraits traits() const override {
    return {.dynamic = true, .reads = {false, false}, .works_on_host = true};
  }

  void setup(Context&, const std::vector<Shape>&) override {
    require(p().ratio_size() > 0 && p().scale_size() > 0, "proposal_param has ", p().ratio_size(),
            " ratio and ", p().scale_size(),
            " scale: give at least one of each, such as ratio: 0.5 ratio: 1 ratio: 2 scale: 8");
    require(p().post_nms_topn() > 0 && p().pre_nms_topn() > 0,
            "pre_nms_topn and post_nms_topn must be above 0");
    const auto base = static_cast<float>(p().base_size());
    const float center = (base - kPixel) / 2;
    for (const float ratio : p().ratio()) {
      require(ratio > 0, "ratio is ", ratio, ", but must be positive");
      const float width = std::floor(std::sqrt(base * base / ratio) + 0.5f),
                  height = std::floor(width * ratio + 0.5f);
      for (const float scale : p().scale()) {
        const float x = (width * scale - kPixel) / 2, y = (height * scale - kPixel) / 2;
        anchors_.push_back({center - x, center - y, center + x, center + y});
      }
    }
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape &scores = bottoms[0], &shifts = bottoms[1], &sizes = bottoms[2];
    const auto anchors = static_cast<int64_t>(anchors_.size());
    require(scores.axes() == 4 && scores[1] == 2 * anchors, "the scores are ", scores.brief(),
            ", but ", p().ratio_size(), " ratios and ", p().scale_size(), " scales need N x ",
            2 * anchors, " x H x W");
    const Shape wanted{scores[0], 4 * anchors, scores[2], scores[3]};
    require(shifts == wanted, "the shifts of the boxes are ", shifts.brief(),
            ", but with these scores must be ", wanted.brief());
    require(sizes.axes() >= 1 && (sizes[0] == 1 || sizes[0] == scores[0]) && sizes.count(1) >= 3,
            "the image sizes are ", sizes.brief(),
            ", but must be 1 x 3: height, width and by what the image was resized");
    const int64_t maximum = scores[0] * p().post_nms_topn();
    std::vector<Shape> tops = {{maximum, 5}};
    if (message().top_size() > 1) tops.push_back({maximum});
    return {tops, {}};
  }

  NmsInput nms_input(const Shape& scores) const {
    NmsInput input;
    input.groups = scores[0];
    input.boxes_per_list = static_cast<int64_t>(anchors_.size()) * scores.count(2);
    input.min_score = kDropped;
    input.max_candidates = p().pre_nms_topn();
    input.suppression = {p().nms_thresh(), 1, kPixel, p().post_nms_topn()};
    return input;
  }

  struct State : DynamicTops {
    Tensor corners;  // the anchors, on the device
  };

  // Workspace: boxes, their scores, nms's workspace.
  Prepared prepare(Context& context, const Preparation& preparation) const override {
    std::vector<float> corners;
    for (const Box& a : anchors_) corners.insert(corners.end(), {a.x1, a.y1, a.x2, a.y2});
    Prepared prepared;
    Tensor& on_device = prepared.make_state<State>().corners;
    on_device = Tensor(context, Shape{static_cast<int64_t>(corners.size())}, preparation.dtype);
    from_floats(context, corners.data(), on_device);
    prepared.workspace = BoxWorkspace::bytes(context, nms_input(preparation.bottoms[0]));
    return prepared;
  }

  // Per image; the anchors follow the layer's bottoms.
  NmsResult found(Context& context, const std::vector<Tensor>& bottoms, char* workspace) const {
    const Shape &map = bottoms[0].shape(), &sizes = bottoms[2].shape();
    NmsInput input = nms_input(map);
    const BoxWorkspace room(input, workspace);
    on(bottoms[0], [&]<typename T>() {
      parallel_for(context, input.groups * input.boxes_per_list,
                   AnchorBoxes<T>{static_cast<int64_t>(anchors_.size()), map.count(2), map[3],
                                  sizes[0], sizes.count(1), static_cast<float>(p().feat_stride()),
                                  static_cast<float>(p().min_size()), kDropped,
                                  bottoms[3].data<T>(), bottoms[0].data<T>(), bottoms[1].data<T>(),
                                  bottoms[2].data<T>(), room.boxes, room.scores});
    });
    input.boxes = room.boxes;
    input.scores = room.scores;
    return nms(context, input, room.rest);
  }

  void forward(Context& context, const Forward& pass) const override {
    std::vector<Tensor> bottoms = pass.bottom;
    State& state = state_of<State>(pass);
    bottoms.push_back(state.corners);
    const NmsResult regions =
        find_boxes(context, bottoms, pass.workspace,
                   [&](Context& where, const std::vector<Tensor>& there, char* workspace) {
                     return found(where, there, workspace);
                   });
    state.tops = {{regions.total(), 5}};
    write_regions(context, regions, part(pass.top[0], state.tops[0]));
    if (pass.top.size() == 1) return;
    state.tops.push_back({regions.total()});
    write_scores(context, regions, part(pass.top[1], state.tops[1]));
  }

  std::vector<Box> anchors_;
};

}  // namespace
REGISTER_LAYER(Proposal, ProposalLayer);
}  // namespace crema
