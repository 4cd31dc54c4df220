// Operators of layers that find objects: the best boxes, suppression, and rows of detections.
#pragma once

#include <string>
#include <vector>

#include "exchange/onnx/layer_export.h"

namespace crema {

constexpr float kNeverFound = -1e9f;  // a score below all others

struct LargestValues {
  std::string values, places;
};
// The `count` largest values along an axis, the largest first. fill_up: the axis may be shorter than
// `count`, and gets values of kNeverFound.
LargestValues largest_values(LayerExport& layer, std::string x, int axes, int axis, int64_t count,
                             bool fill_up);

// Non-maximum suppression in each list: boxes (images, boxes, 4), scores (images, lists, boxes).
// The result has rows of image, list and box: an image's list after list, best first.
std::string suppress_boxes(LayerExport& layer, const std::string& boxes, const std::string& scores,
                           int64_t most, float overlap, float least_score = kNeverFound / 2);

// Columns of rows of indices.
std::string columns_of(LayerExport& layer, const std::string& rows, std::vector<int64_t> numbers);
// The elements, or vectors, of x at these indices.
std::string at_indices(LayerExport& layer, const std::string& x, const std::string& rows);

// The rows; if there are none, the first `number` of the others. number: a vector of one element.
std::string rows_or(LayerExport& layer, const std::string& rows, const std::string& others,
                    const std::string& number);

// Extent 0 of a bottom, as a vector of one element.
std::string images_of(LayerExport& layer, int bottom);

// Writes top 0: rows of image, class, score and box; (found, 2), (found) and (found, 4) are given.
// If nothing was found, each image gets a row of its number and -1.
void write_detection_rows(LayerExport& layer, const std::string& image_and_class,
                          const std::string& scores, const std::string& boxes);

}  // namespace crema
