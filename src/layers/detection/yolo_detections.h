// Detections of YOLO: what the boxes of a map's cells say, and the base of the layers that give
// them out.
#pragma once

#include <vector>

#include "layers/detection/detection.h"
#include "layers/layer.h"

namespace crema {

// One scale of a detector. Each cell has some boxes of 5 + classes numbers: place in the cell and
// score through a logistic function, size as logarithm of its ratio to the box's own, classes.
struct YoloScale {
  std::vector<float> sizes;  // width and height of each box
  float cell = 1;            // width of a cell, in the unit of the sizes

  int64_t boxes() const { return static_cast<int64_t>(sizes.size()) / 2; }
};

struct YoloRule {
  enum class Classes { softmax, logistic };
  enum class Score { object, probability, product };

  int64_t classes = 0;
  Classes function = Classes::softmax;
  Score score = Score::product;
  float least = 0;     // smallest score
  float same = 0.45f;  // of two boxes that overlap at least so much the better one stays
  bool suppress = true;
};

class YoloDetector {
 public:
  std::vector<YoloScale> scales;
  YoloRule rule;

  // Boxes of an image. Error for maps that are none of the scales.
  int64_t boxes(const std::vector<Shape>& maps) const;
  // Bytes of the workspace of detect().
  size_t prepare(Context& context, const std::vector<Shape>& maps, DType dtype);
  // The detections of each image, the best first, each of the likeliest of its box's classes, which
  // count from 0. Boxes of different classes suppress each other. `maps`: one for each scale.
  BestBoxes detect(Context& context, const std::vector<Tensor>& maps,
                   const Tensor& workspace) const;

 private:
  // After the maps the sizes of the boxes.
  BestBoxes found(Context& context, const std::vector<Tensor>& bottoms, char* workspace) const;
  BoxLists lists(int64_t images, int64_t boxes) const;
  Tensor sizes_;  // of the boxes of all scales, on the device
};

// The bottoms are maps, one for each scale; the top is that of write_detections, classes counting
// from 1. A layer sets detector_.
class YoloOutputLayer : public Layer {
 public:
  bool differentiable(int) const override { return false; }
  bool works_on_host() const override { return true; }
  bool dynamic() const override { return true; }
  BackwardReads reads() const override { return {false, false}; }
  Inference infer(const std::vector<Shape>& bottoms) const override;
  Prepared prepare(Context& context, const Preparation& preparation) override;
  void forward(Context& context, const Forward& pass) override;
  std::vector<Shape> dynamic_tops() const override { return {top_}; }

 protected:
  YoloDetector detector_;

 private:
  Shape top_;  // of the last forward pass
};

// Error for a threshold that is no overlap; `field` names it.
void check_overlap(const char* field, float threshold);

}  // namespace crema
