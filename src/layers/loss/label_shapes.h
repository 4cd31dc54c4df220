// Hints for messages about labels that do not fit the scores: the usual causes.
#pragma once

#include <string>

#include "base/strings.h"
#include "tensor/shape.h"

namespace crema {

// For scores with classes along `axis` that are compared with one label for each position.
inline std::string advice_on_labels(const Shape& scores, int axis, const Shape& labels) {
  if (labels.axes() < 2 || scores.axes() <= axis || labels[0] != scores[0]) return "";
  const int64_t positions = scores.count(0, axis) * scores.count(axis + 1);
  const bool maps = labels.axes() == 4 && scores.axes() == 4;
  if (maps && labels[1] > 1 && labels[2] == scores[2] && labels[3] == scores[3])
    return cat("; the labels have ", labels[1], " channels",
               labels[1] == 4   ? ", as pictures with red, green, blue and alpha do"
               : labels[1] == 3 ? ", as colour pictures do"
                                : "",
               ": a label picture has one channel, with the class of each pixel; a layer of type "
               "Slice takes one channel out");
  if (maps && labels[1] == 1 && (labels[2] != scores[2] || labels[3] != scores[3]))
    return cat("; the labels are maps of ", labels[2], " x ", labels[3], ", the scores of ",
               scores[2], " x ", scores[3], ": both need the same size");
  if (labels.axes() > axis && labels.count(0, axis) == scores.count(0, axis) &&
      labels.count() == Shape{positions, labels[axis]}.count() && labels[axis] > 1) {
    return cat("; there are ", labels[axis], " labels for each sample: a layer of type Slice ",
               "(slice_param { axis: ", axis,
               " }) makes a blob of each, for a loss of its own; soft "
               "labels (augment's mixup and cutmix) are as many as there are scores, `classes: ",
               scores[axis], "`");
  }
  if (positions > 0 && labels.count() % positions == 0 && labels.count() > positions) {
    const int64_t each = labels.count() / positions;
    return cat("; there are ", each,
               " labels for each position, which are not sorted as the scores are; expected ",
               positions);
  }
  return "";
}

}  // namespace crema
