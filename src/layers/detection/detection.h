// Detections (kernels/detection/nms.h), normalized to the net's input image, and the blob that
// carries them.
#pragma once

#include <functional>
#include <vector>

#include "device/context.h"
#include "kernels/detection/nms.h"
#include "tensor/tensor.h"

namespace crema {

// Values per detection: image, class, score, left, top, right, bottom.
constexpr int64_t kDetectionValues = 7;

// Writes one row per detection from the front of `top`; the groups of their lists are the images,
// and label 0 is class `first_class`. If there are none at all, one row for each of `images`: its
// index and six times -1. Returns the shape of the rows written, (1, 1, rows, 7); `top` must have
// room for the detections, and for one row per image.
Shape write_detections(Context& context, const NmsResult& found, int64_t images, int first_class,
                       const Tensor& top);

// RoIs in pixels: image, left, top, right, bottom, followed by the score if rows have six values.
// `top` has a row for each.
void write_regions(Context& context, const NmsResult& found, const Tensor& top);
// Only their scores.
void write_scores(Context& context, const NmsResult& found, const Tensor& top);

// Calls find(context, bottoms, workspace) with the bottoms unchanged; for a float64 net on a GPU it
// runs on the host with copies of them, to match the CPU's bits: boxes are float32 in all nets.
using FindBoxes = std::function<NmsResult(Context&, const std::vector<Tensor>&, char*)>;
NmsResult find_boxes(Context& context, const std::vector<Tensor>& bottoms, const Tensor& workspace,
                     const FindBoxes& find);

// Layout of the workspace if each list has its own boxes: the boxes, their scores, and the
// workspace of nms.
struct BoxWorkspace {
  Box* boxes;
  float* scores;
  char* rest;
  BoxWorkspace(const NmsInput& input, char* workspace);
  static size_t bytes(Context& context, const NmsInput& input);
};

}  // namespace crema
