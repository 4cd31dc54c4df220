// Detections (kernels/best_boxes.h) in shares of the image that the net saw, and the blob in which
// they are handed on.
#pragma once

#include <functional>
#include <vector>

#include "device/context.h"
#include "kernels/best_boxes.h"
#include "tensor/tensor.h"

namespace crema {

// Of an object: image, class, score, left, top, right, bottom.
constexpr int64_t kDetectionNumbers = 7;

// Fills `top` from its front with a row for each detection of images[0], then of images[1], ...;
// with none in any image, of each its number and six times -1. Returns the shape of what is filled,
// (1, 1, rows, 7); `top` must have room for the detections, and for a row an image.
Shape write_detections(Context& context, const std::vector<std::vector<Detection>>& images,
                       const Tensor& top);

// find(context, bottoms, workspace) with the bottoms as they are; of a float64 net on a GPU on the
// host, with copies of them, so that it finds the CPU's bits: boxes are float32 in all nets.
using FoundBoxes = std::vector<std::vector<Detection>>;
using FindBoxes = std::function<FoundBoxes(Context&, const std::vector<Tensor>&, char*)>;
FoundBoxes find_boxes(Context& context, const std::vector<Tensor>& bottoms, const Tensor& workspace,
                      const FindBoxes& find);

}  // namespace crema
