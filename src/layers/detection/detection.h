// Detections (kernels/detection/nms.h) in shares of the image that the net saw, and the blob in
// which they are handed on.
#pragma once

#include <functional>
#include <vector>

#include "device/context.h"
#include "kernels/detection/nms.h"
#include "tensor/tensor.h"

namespace crema {

// Of an object: image, class, score, left, top, right, bottom.
constexpr int64_t kDetectionNumbers = 7;

// Fills `top` from its front with a row for each detection; their lists' groups are the images, and
// label 0 is class `first_class`. With none at all a row for each of `images`: its number and six
// times -1. Returns the shape of what is filled, (1, 1, rows, 7); `top` must have room for the
// detections, and for a row an image.
Shape write_detections(Context& context, const BestBoxes& found, int64_t images, int first_class,
                       const Tensor& top);

// Regions in pixels: image, left, top, right, bottom; and the score behind when there are six
// numbers. `top` has a row for each.
void write_regions(Context& context, const BestBoxes& found, const Tensor& top);
// Their scores alone.
void write_scores(Context& context, const BestBoxes& found, const Tensor& top);

// find(context, bottoms, workspace) with the bottoms as they are; of a float64 net on a GPU on the
// host, with copies of them, so that it finds the CPU's bits: boxes are float32 in all nets.
using FindBoxes = std::function<BestBoxes(Context&, const std::vector<Tensor>&, char*)>;
BestBoxes find_boxes(Context& context, const std::vector<Tensor>& bottoms, const Tensor& workspace,
                     const FindBoxes& find);

// How the workspace is divided where each list has boxes of its own: these, their scores, and what
// best_boxes needs.
struct BoxRoom {
  Box* boxes;
  float* scores;
  char* rest;
  BoxRoom(const BoxLists& lists, char* workspace);
  static size_t bytes(Context& context, const BoxLists& lists);
};

}  // namespace crema
