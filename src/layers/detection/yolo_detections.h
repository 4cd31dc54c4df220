// YOLO detections: decodes the boxes of a map's cells; and the base of the layers that output them.
#pragma once

#include <vector>

#include "layers/detection/detection.h"
#include "layers/layer.h"

namespace crema {

// One scale of a detector. Each cell has several boxes of 5 + classes values: position in the cell
// and objectness through a sigmoid, logarithm of the size relative to the anchor's, class scores.
struct YoloScale {
  std::vector<float> sizes;  // width and height of each anchor
  float cell = 1;            // width of a cell, in the unit of the sizes

  int64_t boxes() const { return static_cast<int64_t>(sizes.size()) / 2; }
};

struct YoloRule {
  enum class Classes { softmax, logistic };
  enum class Score { object, probability, product };

  int64_t classes = 0;
  Classes function = Classes::softmax;
  Score score = Score::product;
  float minimum = 0;   // minimum score
  float same = 0.45f;  // overlap at which the better box suppresses the other (NMS)
  bool suppress = true;
};

class YoloDetector {
 public:
  std::vector<YoloScale> scales;
  YoloRule rule;

  // Boxes per image. Error for maps that do not match the scales.
  int64_t boxes(const std::vector<Shape>& maps) const;
  // The boxes of all scales on the device, and the bytes of the workspace, both for detect().
  Tensor sizes(Context& context, DType dtype) const;
  size_t workspace(Context& context, const std::vector<Shape>& maps) const;
  // The detections of each image in order of decreasing score, each with the likeliest class of its
  // box, counted from 0. Boxes of different classes suppress each other. `maps`: one per scale.
  NmsResult detect(Context& context, const std::vector<Tensor>& maps, const Tensor& sizes,
                   const Tensor& workspace) const;

 private:
  // bottoms: the maps, followed by the boxes' sizes.
  NmsResult found(Context& context, const std::vector<Tensor>& bottoms, char* workspace) const;
  NmsInput nms_input(int64_t images, int64_t boxes) const;
};

// Bottoms: maps, one per scale; the top is that of write_detections, classes counted from 1. A
// derived layer sets detector_.
class YoloOutputLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::detection, .selects = true};

  bool differentiable(int) const override { return false; }
  LayerTraits traits() const override {
    return {.dynamic = true, .reads = {false, false}, .works_on_host = true};
  }
  Inference infer(const std::vector<Shape>& bottoms) const override;
  Prepared prepare(Context& context, const Preparation& preparation) const override;
  void forward(Context& context, const Forward& pass) const override;

 protected:
  YoloDetector detector_;

 private:
  struct State : DynamicTops {
    Tensor sizes;
  };
};

// Error for a threshold that is not a valid overlap; `field` names it.
void check_overlap(const char* field, float threshold);

}  // namespace crema
