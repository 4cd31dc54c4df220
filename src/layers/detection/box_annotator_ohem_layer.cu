// BoxAnnotatorOHEM: keeps each image's regions with the largest loss for training (online hard
// example mining, R-FCN).
//   labels_out = label if the region is among its image's roi_per_img with the largest loss,
//                ignore_label elsewhere
//   weights_out = weights there, 0 elsewhere
// Shapes: regions (R, 5, H, W), where the first of the 5 values is the image; losses and labels (R,
// 1, H, W); weights of the box coordinates (R, C, H, W); axes of 1 may be left out. Tops: labels
// (R, 1, H, W) and weights (R, C, H, W). Of regions with equal losses the first are kept.
// Parameters: none.
// Gradient: none.
#include "device/parallel.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"
#include "tensor/on.h"

namespace crema {
namespace {

// Caffe's view of a blob as four axes.
Shape four_axes(const Shape& shape) {
  Shape four = shape;
  while (four.axes() < 4) four.push_back(1);
  return four;
}

// Keeps a region if fewer than `maximum` of its image precede it. Regions are few, so each is
// compared with all others.
template <typename T>
struct HardRegions {
  int64_t count, inner, maximum;
  T ignored;
  const T *regions, *losses, *labels;
  T* chosen;
  uint8_t* stays;
  CREMA_HD int image(int64_t i) const {
    return static_cast<int>(regions[i / inner * 5 * inner + i % inner]);
  }
  CREMA_HD void operator()(int64_t i) const {
    const T loss = losses[i];
    const int own = image(i);
    int64_t before = 0;
    for (int64_t other = 0; other < count; ++other) {
      const bool harder = losses[other] > loss || (losses[other] == loss && other < i);
      before += harder && image(other) == own;
    }
    stays[i] = before < maximum;
    chosen[i] = before < maximum ? labels[i] : ignored;
  }
};

template <typename T>
struct HardWeights {
  int64_t channels, inner;
  const uint8_t* stays;
  const T* weights;
  T* chosen;
  CREMA_HD void operator()(int64_t i) const {
    const int64_t region = i / inner / channels * inner + i % inner;
    chosen[i] = stays[region] ? weights[i] : T(0);
  }
};

class BoxAnnotatorOhemLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::detection, .in_use = InUse::left_out};

 private:
  const BoxAnnotatorOHEMParameter& p() const { return params<BoxAnnotatorOHEMParameter>(); }
  Arity bottoms() const override { return {4, 4}; }
  Arity tops() const override { return {2, 2}; }
  bool differentiable(int) const override { return false; }
  LayerTraits traits() const override { return {.reads = {false, false}}; }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    require(p().roi_per_img() > 0,
            "box_annotator_ohem_param needs roi_per_img above 0: how many regions of an image "
            "should be trained?");
    const Shape regions = four_axes(bottoms[0]), weights = four_axes(bottoms[3]);
    require(regions[1] == 5, "the regions are ", bottoms[0].brief(),
            ", but must have 5 numbers each: image, left, top, right, bottom");
    const Shape positions{regions[0], 1, regions[2], regions[3]};
    for (int i = 1; i < 3; ++i) {
      require(four_axes(bottoms[i]) == positions, "the ", i == 1 ? "losses" : "labels", " are ",
              bottoms[i].brief(), ", but with regions of ", bottoms[0].brief(), " must be ",
              positions.brief());
    }
    require(Shape({weights[0], 1, weights[2], weights[3]}) == positions, "the weights are ",
            bottoms[3].brief(),
            ", but must be for as many regions as there are: ", bottoms[0].brief());
    return {{positions, weights}, {}};
  }

  // Workspace: which regions are kept, one byte each.
  Prepared prepare(Context&, const Preparation& preparation) const override {
    Prepared prepared;
    prepared.workspace = static_cast<size_t>(preparation.tops[0].count());
    return prepared;
  }

  void forward(Context& context, const Forward& pass) const override {
    const Shape& weights = pass.top[1].shape();
    const int64_t count = pass.top[0].count(), inner = weights.count(2);
    auto* const stays = pass.workspace.data<uint8_t>();
    on(pass.top[0], [&]<typename T>() {
      parallel_for(
          context, count,
          HardRegions<T>{count, inner, p().roi_per_img(), static_cast<T>(p().ignore_label()),
                         pass.bottom[0].data<T>(), pass.bottom[1].data<T>(),
                         pass.bottom[2].data<T>(), pass.top[0].data<T>(), stays},
          64);
      parallel_for(context, weights.count(),
                   HardWeights<T>{weights[1], inner, stays, pass.bottom[3].data<T>(),
                                  pass.top[1].data<T>()});
    });
  }
};

}  // namespace
REGISTER_LAYER(BoxAnnotatorOHEM, BoxAnnotatorOhemLayer);
}  // namespace crema
