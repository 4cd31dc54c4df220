// Outputs that have a row for each box in a batch: (1, 1, rows, 7) with image, class, score and the box's
// sides, the images in order. A batch without boxes has a row for each image, with a class of -1.
#pragma once

#include <cstdint>

#include "crema.h"
#include "tools/serve/served_pictures.h"

namespace crema {

constexpr int64_t kBoxNumbers = 7;

bool has_box_rows(const BlobInfo& output);
// What such an output is for the images from `first` on alone.
ServedTensor box_rows_of(const ServedTensor& output, int64_t first, int64_t images);

}  // namespace crema
